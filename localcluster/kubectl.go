// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
)

// runKubectl runs kubectl. A leading --dir names the cluster. The kubeconfig is not
// set if the arguments name a server (--kubeconfig, --server).
func runKubectl(args []string) error {
	dir, args, err := leadingDir(args)
	if err != nil {
		return err
	}
	if !namesServer(args) {
		c := clusterAt(dir)
		if _, err := os.Stat(c.kubeconfig()); err == nil {
			os.Setenv("KUBECONFIG", c.kubeconfig())
		} else if needsServer(args) {
			return fmt.Errorf("no cluster in %s; start one with: localcluster up --dir %s", dir, dir)
		}
	}

	os.Args = append([]string{"kubectl"}, args...)
	// As in kubectl's main, the verbosity is set before the command tree is built,
	// which may log.
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		return err
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints it as kubectl does, and exits
	}
	return nil
}

// leadingDir returns the directory and the arguments after a leading --dir DIR or
// --dir=DIR.
func leadingDir(args []string) (dir string, rest []string, err error) {
	dir = os.Getenv("LOCALCLUSTER_DIR")
	if dir == "" {
		dir = defaultDir
	}
	if len(args) == 0 {
		return dir, args, nil
	}
	if value, ok := strings.CutPrefix(args[0], "--dir="); ok {
		return value, args[1:], nil
	}
	if args[0] == "--dir" {
		if len(args) == 1 {
			return "", nil, fmt.Errorf("--dir needs a directory; try: localcluster kubectl --dir %s get nodes", defaultDir)
		}
		return args[1], args[2:], nil
	}
	return dir, args, nil
}

// namesServer reports whether kubectl's own flags name a server.
func namesServer(args []string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false // the remaining arguments are those of a command that exec runs
		}
		for _, flag := range []string{"--kubeconfig", "--server"} {
			if arg == flag || strings.HasPrefix(arg, flag+"=") {
				return true
			}
		}
		if strings.HasPrefix(arg, "-s") && !strings.HasPrefix(arg, "--") {
			return true
		}
	}
	return false
}

// needsServer returns false for commands that work without a cluster.
func needsServer(args []string) bool {
	if len(args) == 0 || slices.Contains(args, "--client") || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		return false
	}
	return !slices.Contains([]string{"help", "completion", "options", "kustomize", "plugin"}, args[0])
}
