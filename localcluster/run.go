// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	_ "unsafe" // for go:linkname

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// The programs of the components, and their names on the command line.
const (
	etcd              = "etcd"
	kubeAPIServer     = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	kubeScheduler     = "kube-scheduler"
	kwokController    = "kwok"
)

// runComponent runs a component in this process. Components read os.Args, so these
// are set to the arguments that the component's own binary would have.
func runComponent(name string, args []string) error {
	os.Args = append([]string{name}, args...)
	switch name {
	case etcd:
		etcdmain.Main(os.Args)
		return nil
	case kubeAPIServer:
		return runKubernetes(apiserver.NewAPIServerCommand())
	case controllerManager:
		return runKubernetes(controllermanager.NewControllerManagerCommand())
	case kubeScheduler:
		return runKubernetes(scheduler.NewSchedulerCommand())
	case kwokController:
		return runKwok()
	}
	return fmt.Errorf("unknown component %q", name)
}

func runKubernetes(command *cobra.Command) error {
	if code := cli.Run(command); code != 0 {
		return errSilent // cli.Run has printed the error
	}
	return nil
}

// runKwok runs kwok as kwok's own main does, with a logger and the configuration
// (see kwok.go) in the context.
func runKwok() error {
	if name := os.Getenv(kwokName); name != "" {
		os.Args[0] = name
	}
	forgetGlobalFlags()
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx, _ := kwoklog.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return fmt.Errorf("reading the kwok configuration: %w", err)
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil && !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}

// forgetGlobalFlags removes the flags that linked packages registered globally.
// cobra adds global flags to every root command, and expects --version to be a
// boolean, which Kubernetes' --version is not.
func forgetGlobalFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
}

// Kubernetes' own build sets these variables with linker flags; without a version,
// clients cannot parse the server's answer. Here init sets them to the version of
// the linked module, so that the build needs no flags that repeat go.mod.
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
			// version.Get returns a copy that was made before this init.
			if err := version.SetDynamicVersion(module.Version); err != nil {
				panic(err) // it equals gitVersion, which is always accepted
			}
		}
	}
}
