// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchkeeper/watchkeeper/localcluster/balancer"
)

// upOptions are the flags of `localcluster up`.
type upOptions struct {
	nodes         int // negative: as in the last up, or defaultNodes
	apiserverPort int // 0: as in the last up, or any free port
	fresh         bool
	apiserver     []string // additional arguments of kube-apiserver, as --name=value
	stages        string   // directory of further stages of kwok, or empty
	apiservers    int
	balance       balancer.Mode // with several API servers
	untilEOF      bool
	programs      programs
	exec          bool // commands of kubectl exec run on this machine
}

const defaultNodes = 5

func upCommand(dir *string) *cobra.Command {
	var options upOptions
	var featureGates, runtimeConfig, balance string
	var apiserverArgs, run []string
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster and stay in the foreground until Ctrl-C",
		Long: `Start the cluster and stay in the foreground until Ctrl-C.

The directory keeps the data, the certificates and the ports for the next up.

With --apiservers 2 or more, a balancer is at the cluster's address. The API servers are
the components kube-apiserver, kube-apiserver-2 and so on. The balancer prefers those
that are ready, and balances

  connection   TCP connections in turn, without looking into them
  request      HTTP requests in turn; it ends TLS, and passes the user of a client
               certificate on as a front proxy does
  random       as request, to a random API server`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !command.Flags().Changed("nodes") {
				options.nodes = -1
			} else if options.nodes < 0 {
				return errors.New("--nodes must be 0 or more")
			}
			if featureGates != "" {
				options.apiserver = append(options.apiserver, "--feature-gates="+featureGates)
			}
			if runtimeConfig != "" {
				options.apiserver = append(options.apiserver, "--runtime-config="+runtimeConfig)
			}
			for _, arg := range apiserverArgs {
				if name, _, ok := strings.Cut(arg, "="); !ok || name == "" || strings.HasPrefix(name, "-") {
					return fmt.Errorf("--apiserver-arg %q must be NAME=VALUE, such as audit-log-path=/tmp/audit.log", arg)
				}
				options.apiserver = append(options.apiserver, "--"+arg)
			}
			if options.apiservers < 1 {
				return errors.New("--apiservers must be 1 or more")
			}
			if command.Flags().Changed("balance") && options.apiservers == 1 {
				return errors.New("--balance needs several API servers; add --apiservers 3")
			}
			var err error
			if options.balance, err = balancer.ParseMode(balance); err != nil {
				return err
			}
			if options.programs, err = parsePrograms(run); err != nil {
				return err
			}
			ctx := command.Context()
			if options.untilEOF {
				var cancel context.CancelFunc
				ctx, cancel = untilEOF(ctx, os.Stdin)
				defer cancel()
			}
			return up(ctx, clusterAt(*dir), options, os.Stdout)
		},
	}
	command.Flags().IntVar(&options.nodes, "nodes", defaultNodes, "number of simulated nodes")
	command.Flags().IntVar(&options.apiserverPort, "apiserver-port", 0, "port of the API server, kept for the next up; 0 uses the last one, or any free one")
	command.Flags().BoolVar(&options.fresh, "fresh", false, "first delete the cluster's data, certificates and ports")
	command.Flags().StringVar(&featureGates, "feature-gates", "", "feature gates of kube-apiserver, such as A=true,B=false; not kept for the next up")
	command.Flags().StringVar(&runtimeConfig, "runtime-config", "", "runtime config of kube-apiserver, such as api/all=true; not kept for the next up")
	command.Flags().StringArrayVar(&apiserverArgs, "apiserver-arg", nil, "`NAME=VALUE` of a flag of kube-apiserver, such as audit-log-path=/tmp/audit.log; replaces localcluster's own value of that flag; may be repeated; not kept for the next up")
	command.Flags().StringVar(&options.stages, "stages", "", "`DIR` of files *.yaml with further stages of kwok, which then names itself kubelet in what it writes; not kept for the next up")
	command.Flags().StringArrayVar(&run, "run", nil, "`IMAGE=PROGRAM`, such as watchkeeper=bin/watchkeeper: Pods whose first container has that image run the program on this machine, as you; may be repeated; not kept for the next up")
	command.Flags().BoolVar(&options.exec, "exec", false, "let kubectl exec run commands on this machine, as you; not kept for the next up")
	command.Flags().IntVar(&options.apiservers, "apiservers", 1, "number of API servers; not kept for the next up")
	command.Flags().StringVar(&balance, "balance", string(balancer.Connection), "what a balancer spreads over several API servers: connection, request or random")
	command.Flags().BoolVar(&options.untilEOF, "until-eof", false, "also stop at the end of standard input: a pipe from the program that has started this one ends with that program, even if it is killed")
	return command
}

// untilEOF returns a context that ends with ctx, and at the end of in. The goroutine that
// reads in ends with the process, as a read of standard input cannot be interrupted.
func untilEOF(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	// The program that has gone no longer reads the output. Without this, the next line of
	// it would end up before it has stopped the components.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end, too
		cancel()
	}()
	return ctx, cancel
}

// up runs the cluster until ctx ends, then stops it.
func up(ctx context.Context, c cluster, options upOptions, out io.Writer) error {
	lock, err := c.claim()
	if err != nil {
		return err
	}
	defer lock.Close()
	if options.fresh {
		if err := c.wipe(); err != nil {
			return err
		}
	}
	s, ports, err := c.prepare(options)
	if err != nil {
		return err
	}
	defer ports.release()
	server := "https://" + loopback(s.Ports[kubeAPIServer])
	if err := c.makeCerts(); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(server); err != nil {
		return err
	}
	if err := c.writeKwokConfig(options.stages); err != nil {
		return err
	}
	apiservers := s.apiservers(options.apiservers)
	var several *replicas
	if options.apiservers > 1 {
		if several, err = c.startReplicas(s, apiservers, options.balance); err != nil {
			return err
		}
		defer several.close()
	}
	specs, err := c.specs(s, apiservers, options.apiserver)
	if err != nil {
		return err
	}
	if options.stages != "" {
		nameKubelet(specs)
	}
	s.Commands = map[string][]string{}
	for _, spec := range specs {
		s.Commands[spec.name] = spec.args
		// Each up truncates the logs; restarts of a component append to them.
		if err := os.WriteFile(c.logFile(spec.name), nil, 0o600); err != nil {
			return err
		}
	}
	if err := c.writeState(s); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	supervisor, err := newSupervisor(c, specs, out)
	if err != nil {
		return err
	}
	client, err := c.healthClient("ca", "admin")
	if err != nil {
		return err
	}
	supervisor.ready = httpHealth(client, server+"/readyz")
	supervisor.replicas = several
	files := c.podFiles(s)
	pods, err := servePods(ctx, files)
	if err != nil {
		return err
	}
	defer pods()
	defer cancel() // pods waits for goroutines that end with ctx
	admin, err := c.client()
	if err != nil {
		return err
	}
	programs := c.newRunner(server, options.programs, admin, out)
	kubelet, err := c.serveKubelet(ctx, s.Ports[portKubelet], &kubelet{client: admin, files: files, exec: options.exec, launcher: supervisor.launcher, target: programs.of})
	if err != nil {
		return err
	}
	defer kubelet()
	defer cancel()
	control, err := serveControl(ctx, supervisor, cancel)
	if err != nil {
		return err
	}
	defer control()
	defer supervisor.stopAll()
	defer cancel()

	if err := supervisor.bringUp(ctx, s, time.Now()); err != nil {
		if ctx.Err() != nil {
			return nil // interrupted by the user
		}
		return err
	}
	if len(options.programs) > 0 {
		ended, err := programs.start(ctx)
		if err != nil {
			return err
		}
		defer ended()
		defer cancel() // for the programs, which end with ctx
	}
	// Package testcluster reads this line.
	fmt.Fprintf(out, "ready %s  kubeconfig %s\n", server, c.kubeconfig())
	<-ctx.Done()
	return nil
}

// bringUp starts etcd, then the first API server, then all other components at once, and
// creates the nodes. It returns when Pods can be created.
func (s *supervisor) bringUp(ctx context.Context, st state, began time.Time) error {
	// The goroutines share ctx, so that the first failure ends all of them.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	report := func(format string, args ...any) {
		fmt.Fprintf(s.out, "%6s  %s\n", elapsed(began), fmt.Sprintf(format, args...))
	}
	start := func(c *component) error {
		report("starting %s…", c.name)
		if err := s.start(ctx, c); err != nil {
			return err
		}
		report("%s is ready", c.name)
		return nil
	}
	for _, c := range s.components[:2] { // etcd and the first API server
		if err := start(c); err != nil {
			return err
		}
	}
	var group sync.WaitGroup
	for _, c := range s.components[2:] {
		group.Go(func() {
			if err := start(c); err != nil {
				cancel(err)
			}
		})
	}
	group.Go(func() {
		report("creating %d nodes…", st.Nodes)
		if err := s.cluster.makeNodes(ctx, st.Nodes); err != nil {
			cancel(err)
			return
		}
		if err := s.cluster.awaitUsable(ctx, st.Nodes); err != nil {
			cancel(err)
			return
		}
		report("%d nodes are Ready", st.Nodes)
	})
	group.Wait()
	return context.Cause(ctx)
}

// elapsed formats the time since a moment.
func elapsed(since time.Time) string {
	return fmt.Sprintf("%.1fs", time.Since(since).Seconds())
}
