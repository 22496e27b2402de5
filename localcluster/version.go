// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// Kubernetes' own build stamps its version into these variables with linker
// flags; unstamped, clients cannot parse the server's version. Here they come
// from the module the binary is built from, so that every way of building it
// is right and no flag has to follow go.mod.
//
//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

//go:linkname gitCommit k8s.io/component-base/version.gitCommit
var gitCommit string

//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
var clientVersion string

//go:linkname clientCommit k8s.io/client-go/pkg/version.gitCommit
var clientCommit string

func init() {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return // built without modules: the version stays unknown
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			gitVersion, clientVersion = module.Version, module.Version
			gitCommit, clientCommit = "", ""
			// What version.Get returns is a copy made before this init.
			if err := version.SetDynamicVersion(module.Version); err != nil {
				panic(err) // it equals gitVersion, which is always accepted
			}
		}
	}
}
