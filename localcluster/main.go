// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Localcluster runs a real Kubernetes control plane on this machine without
// containers: etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
// kwok (simulated nodes and kubelets) and kubectl, all linked into this one
// binary from their Go modules. `localcluster up` starts each server as a
// child process; README.md describes the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// defaultDir is the directory of the cluster if neither --dir nor
// $LOCALCLUSTER_DIR is set.
const defaultDir = ".localcluster"

func main() {
	// Components and kubectl are complete programs with flags and global state
	// of their own, so they start before cobra reads the arguments.
	switch {
	case strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "kubectl":
		exit(runKubectl(os.Args[1:]))
	case len(os.Args) > 1 && os.Args[1] == "kubectl":
		exit(runKubectl(os.Args[2:]))
	case len(os.Args) > 2 && os.Args[1] == "component":
		exit(runComponent(os.Args[2], os.Args[3:]))
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	forgetGlobalFlags()
	// client-go also returns the errors that it logs.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	exit(rootCommand().ExecuteContext(ctx))
}

// exit ends the process with code 0, or prints an error and ends it with code 1.
func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	if !errors.Is(err, errSilent) {
		fmt.Fprintf(os.Stderr, "localcluster: %v\n", err)
	}
	os.Exit(1)
}

// errSilent sets the exit code to 1 without another message.
var errSilent = errors.New("")

func rootCommand() *cobra.Command {
	dir := os.Getenv("LOCALCLUSTER_DIR")
	if dir == "" {
		dir = defaultDir
	}
	root := &cobra.Command{
		Use:   "localcluster",
		Short: "A real Kubernetes control plane with simulated nodes, on loopback only",
		Long: `A real Kubernetes control plane with simulated nodes, on loopback only.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are the real
programs. kwok simulates nodes, kubelets and containers: Pods are scheduled and
become Running, but no container runs.

  localcluster up                        start a cluster and stay in the foreground
  localcluster kubectl get nodes         the real kubectl, with the cluster's kubeconfig
  localcluster load --pods 1000 --churn 50
  localcluster stop kube-apiserver --signal KILL
  localcluster start kube-apiserver

Every command takes --dir (or $LOCALCLUSTER_DIR), the directory of the cluster.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&dir, "dir", dir, "directory of the cluster; also $LOCALCLUSTER_DIR")
	root.AddCommand(
		upCommand(&dir),
		statusCommand(&dir),
		stopCommand(&dir),
		startCommand(&dir),
		lagCommand(&dir),
		snapshotCommand(&dir),
		restoreCommand(&dir),
		downCommand(&dir),
		loadCommand(&dir),
		metricsCommand(&dir),
		// Only for the help text: main runs kubectl before cobra.
		&cobra.Command{
			Use:   "kubectl [--dir DIR] ARGS…",
			Short: "Run kubectl with the cluster's kubeconfig",
			Run:   func(*cobra.Command, []string) {},
		},
	)
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}
