// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// The components, by the names users type.
const (
	etcd              = "etcd"
	kubeAPIServer     = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	kubeScheduler     = "kube-scheduler"
	kwokController    = "kwok"
)

// runComponent turns this process into the named component. Each one reads
// os.Args somewhere, so they are set to what its own binary would have seen.
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
	return fmt.Errorf("unknown component %q; the components are %s", name, componentNames())
}

func runKubernetes(command *cobra.Command) error {
	if code := cli.Run(command); code != 0 {
		return errSilent // cli.Run has printed the error
	}
	return nil
}

// runKwok starts kwok as its own main does: a logger and the configuration
// (stages and simulated streams, see kwok.go) travel in the context.
func runKwok() error {
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

// forgetGlobalFlags drops what the linked packages registered on the process's
// flag set. cobra adds those flags to every root command, and Kubernetes'
// --version is not the boolean cobra takes it for.
func forgetGlobalFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
}
