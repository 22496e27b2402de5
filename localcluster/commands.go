// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// The commands that send a request to a running up.

// furtherAPIServers continues the list of components.
const furtherAPIServers = ",\nand with --apiservers kube-apiserver-2 and so on"

func stopCommand(dir *string) *cobra.Command {
	var signal string
	command := &cobra.Command{
		Use:       "stop COMPONENT",
		Short:     "Stop one component and wait until it has ended",
		Long:      "Stop one component and wait until it has ended. --signal KILL kills it; --signal STOP\nfreezes it until `localcluster start`. Components: " + componentNames() + furtherAPIServers + ".",
		Args:      cobra.ExactArgs(1),
		ValidArgs: strings.Split(componentNames(), ", "),
		RunE: func(_ *cobra.Command, args []string) error {
			return callAndPrint(*dir, request{Op: "stop", Component: args[0], Signal: signal})
		},
	}
	command.Flags().StringVar(&signal, "signal", "TERM", "signal to send: TERM, INT, QUIT, ABRT, KILL, STOP")
	return command
}

func startCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:       "start COMPONENT",
		Short:     "Start a stopped component on its port and wait until it is ready",
		Long:      "Start a stopped, dead or frozen component with the same arguments and wait until it\nis ready. Components: " + componentNames() + furtherAPIServers + ".",
		Args:      cobra.ExactArgs(1),
		ValidArgs: strings.Split(componentNames(), ", "),
		RunE: func(_ *cobra.Command, args []string) error {
			return callAndPrint(*dir, request{Op: "start", Component: args[0]})
		},
	}
}

func lagCommand(dir *string) *cobra.Command {
	req := request{Op: "lag"}
	command := &cobra.Command{
		Use:   "lag API-SERVER",
		Short: "Let an API server's watch cache lag behind etcd",
		Long: `Hold back, or with --delay delay, what the watches of an API server on etcd receive,
until --off or for a time. When the lag ends, the API server receives the rest at once.

Writes, and reads that the API server sends to etcd, stay as they are. Thus from a lagging
API server a client gets

  watch                       the events late
  list, resourceVersion=0     old objects
  list, resourceVersion=N     old objects, or an error after 3 seconds if N has not arrived
  list, without a version     the newest objects, within 3 seconds: the API server waits
                              for its cache, then asks etcd
  get, without a version      the newest object

The API server's own caches, such as that of RBAC, lag as well. A restart of the API
server ends its lag. The cluster needs several API servers: localcluster up --apiservers 2.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if req.Delay < 0 || req.For < 0 {
				return errors.New("--delay and --for must be positive")
			}
			req.Component = args[0]
			return callAndPrint(*dir, req)
		},
	}
	command.Flags().DurationVar(&req.Delay, "delay", 0, "delay everything by this time instead of holding it back")
	command.Flags().DurationVar(&req.For, "for", 0, "end the lag after this time; 0 keeps it until --off")
	command.Flags().BoolVar(&req.Off, "off", false, "end the lag")
	command.MarkFlagsMutuallyExclusive("off", "delay")
	command.MarkFlagsMutuallyExclusive("off", "for")
	return command
}

func callAndPrint(dir string, req request) error {
	result, err := clusterAt(dir).call(req)
	if err == nil {
		fmt.Println(result.Message)
	}
	return err
}

func downCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the whole cluster, as Ctrl-C in `up` does",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c := clusterAt(*dir)
			if _, err := c.call(request{Op: "down"}); err != nil {
				return err
			}
			for c.locked() {
				select {
				case <-command.Context().Done():
					return errors.New("interrupted while the cluster was stopping; it continues to stop")
				case <-time.After(50 * time.Millisecond):
				}
			}
			return nil
		},
	}
}

func statusCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the components; exit code 1 unless the API server is ready",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c := clusterAt(*dir)
			result, err := c.call(request{Op: "status"})
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
			fmt.Fprintln(table, "COMPONENT\tSTATE\tPID\tUPTIME\tADDRESS")
			for _, component := range result.Components {
				pid, uptime := "-", "-"
				if component.Pid != 0 {
					pid = fmt.Sprint(component.Pid)
					uptime = time.Since(component.Since).Round(time.Second).String()
				}
				phase := string(component.Phase)
				if component.Lag != "" {
					phase += ", watches " + component.Lag
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", component.Name, phase, pid, uptime, loopback(component.Port))
			}
			if err := table.Flush(); err != nil {
				return err
			}
			fmt.Printf("\nAPI %s\n", result.API)
			if result.API != "ready" {
				return errSilent
			}
			return nil
		},
	}
}
