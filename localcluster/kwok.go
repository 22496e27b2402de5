// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokconfig "sigs.k8s.io/kwok/pkg/apis/config/v1alpha1"
	"sigs.k8s.io/yaml"
)

// ownStages are the stages that kwok's defaults do not have: a slow start and crash
// loops.
//
//go:embed stages/*.yaml
var ownStages embed.FS

// writeKwokConfig writes kwok's configuration: how nodes and Pods change (stages). more,
// unless empty, is the directory of further stages (`up --stages`).
func (c cluster) writeKwokConfig(more string) error {
	var out bytes.Buffer
	add := func(document string) {
		fmt.Fprintf(&out, "---\n%s\n", strings.TrimSpace(document))
	}
	add(nodefast.DefaultNodeInit)
	add(nodeheartbeat.DefaultNodeHeartbeatWithLease)
	add(podfast.DefaultPodReady)
	add(podfast.DefaultPodComplete)
	add(podfast.DefaultPodDelete)
	own, err := fs.Sub(ownStages, "stages")
	if err != nil {
		return err
	}
	if err := eachStage(own, add); err != nil {
		return err
	}
	if more != "" {
		if err := eachStage(os.DirFS(more), add); err != nil {
			return fmt.Errorf("--stages %s: %w", more, err)
		}
	}
	options, err := yaml.Marshal(kwokOptions())
	if err != nil {
		return err
	}
	add(string(options))
	return os.WriteFile(c.path("kwok.yaml"), out.Bytes(), 0o600)
}

// eachStage calls add with the content of each *.yaml of a directory, of which there has
// to be one.
func eachStage(dir fs.FS, add func(string)) error {
	names, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errors.New("there is no directory with files *.yaml")
	}
	for _, name := range names {
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		add(string(data))
	}
	return nil
}

// kwokName is the environment variable with the name that kwok gives itself in its
// User-Agent. The API server takes the manager in metadata.managedFields from there.
const kwokName = "LOCALCLUSTER_KWOK_NAME"

// nameKubelet lets kwok name itself kubelet, so that what stages show of a kubelet has
// the manager that it has in a real cluster.
func nameKubelet(specs []spec) {
	for i := range specs {
		if specs[i].name == kwokController {
			specs[i].env = append(specs[i].env, kwokName+"=kubelet")
		}
	}
}

// kwokOptions raises the number of workers, so that the Pods of `localcluster load`
// become Running as fast as they are created. It also sets kwok's defaults, which kwok
// applies only if there is no configuration object at all.
func kwokOptions() *kwokconfig.KwokConfiguration {
	options := &kwokconfig.KwokConfiguration{}
	options.APIVersion, options.Kind = kwokconfig.GroupVersion.String(), kwokconfig.KwokConfigurationKind
	kwokconfig.SetObjectDefaults_KwokConfiguration(options)
	options.Options.PodPlayStageParallelism = 16
	// Its port answers everybody: see kubelet.
	options.Options.EnableDebuggingHandlers, options.Options.EnableProfilingHandler = new(bool), new(bool)
	return options
}
