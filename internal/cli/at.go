// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/cli/refusal"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
)

func newAt(s streams) *cobra.Command {
	c := &client{streams: s}
	var kubectl []string
	cmd := &cobra.Command{
		Use:   "at WHEN [flags] -- KUBECTL-ARGUMENTS",
		Short: "Run kubectl against a past moment",
		Long: `Run kubectl (from PATH) against a moment that a running gateway has recorded:
an age such as 10m or 1h30m, a time such as 2026-01-31T15:04:05Z or 15:04, or a
resourceVersion. The past is read-only: use get, get --watch and describe. kubectl
--raw and kubectl proxy would leave the past, and are refused: use curl. Ages that
kubectl computes itself, as in describe and events, count from now. The exit code is
kubectl's.`,
		Example: `  watchkeeper at 10m -- get pods -A -o wide
  watchkeeper at 2026-01-31T15:04:05Z -- describe node worker-3
  watchkeeper at 1h -n shop -- get pods --watch`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			kubectl, err = kubectlArgs(cmd, args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.at(cmd.Context(), args[0], kubectl) },
	}
	c.addScopeFlags(cmd.Flags())
	cmd.Flags().SetInterspersed(false) // arguments after -- are kubectl's
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(cmd, negativeAge(err)) })
	c.complete(cmd, completion.Options{Argument: true})
	return cmd
}

// negativeAge returns the error for an age such as -5m, which is no flag, and otherwise
// the error for the flag.
func negativeAge(err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	letters := unknown.GetSpecifiedShortnames()
	if letters == "" || !strings.Contains("0123456789", letters[:1]) {
		return err
	}
	_, err = kube.ParseMoment("-"+letters, time.Now())
	return fmt.Errorf("WHEN: %w", err)
}

// kubectlArgs returns kubectl's arguments, which follow the moment and our flags.
func kubectlArgs(cmd *cobra.Command, args []string) ([]string, error) {
	missing := usageError(cmd, errors.New("at needs a moment and, after --, arguments for kubectl, such as: watchkeeper at 10m -- get pods"))
	if len(args) == 0 {
		return nil, missing
	}
	if err := cmd.Flags().Parse(args[1:]); err != nil {
		return nil, usageError(cmd, fmt.Errorf("%w: kubectl's flags follow after --", err))
	}
	if help, err := cmd.Flags().GetBool("help"); help && err == nil {
		return nil, pflag.ErrHelp
	}
	if args = cmd.Flags().Args(); len(args) == 0 {
		return nil, missing
	}
	if args[0] == "kubectl" {
		return nil, usageError(cmd, errors.New("at runs kubectl itself: write only its arguments after --, such as: watchkeeper at 10m -- get pods"))
	}
	return args, nil
}

func (c *client) at(ctx context.Context, text string, args []string) error {
	if err := c.prepareScope(ctx, false); err != nil {
		return err
	}
	moment, err := c.when(ctx, "WHEN", text)
	if err != nil {
		return err
	}
	if err := leavesPast(args, c.server+"/at/"+moment); err != nil {
		return err
	}
	if err := c.checkRecorded(ctx, moment, &zone{}); err != nil {
		return err
	}
	if *c.flags.Namespace != "" { // of one that does not exist, kubectl says "No resources found"
		if err := c.knownNamespace(ctx); err != nil {
			return err
		}
	}
	// kubectl reports other errors.
	if body, err := c.open(ctx, "/at/"+moment+"/api", nil); err == nil {
		body.Close()
	} else if _, ok := errors.AsType[*elsewhereError](err); ok || hasCode(err, http.StatusForbidden) {
		return err
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return fmt.Errorf("kubectl is not in PATH: install it, or read %s/at/%s with another client", c.server, moment)
	}
	// kubectl's cache is keyed by the server's URL, which differs each time.
	cache, err := os.MkdirTemp("", "watchkeeper-at-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	flags := []string{"--server=" + c.server + "/at/" + moment}
	if connect.Plain(c.server) { // it gets no credentials
		flags = append(flags, "--kubeconfig="+os.DevNull)
	} else {
		flags = append(flags, c.flags.Arguments()...)
	}
	flags = append(flags, "--cache-dir="+cache, "--namespace="+c.namespace)
	// Flags follow the command, because a plugin's command must come first.
	if !strings.HasPrefix(args[0], "-") {
		flags, args = append(args[:1:1], flags...), args[1:]
	}
	cmd := exec.Command(kubectl, append(flags, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.in, c.out, termtext.Under(c.err)
	return runChild(ctx, cmd)
}

// leavesPast returns an error if kubectl with these arguments would not read the past
// below a URL: --raw and proxy replace the path of the server, so that a delete --raw would
// delete from the live cluster.
func leavesPast(args []string, url string) error {
	command := false // the command has been passed
	for i, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return nil
		case name == "--raw", arg == "proxy" && !command:
			if value == "" && name == "--raw" && i+1 < len(args) {
				value = args[i+1]
			}
			if !strings.HasPrefix(value, "/") {
				value = "/api/v1/pods"
			}
			return fmt.Errorf("kubectl %s ignores the path of the server, and would reach the present: use 'curl %s%s'", name, url, value)
		case name == "--server", name == "--kubeconfig", name == "--context", name == "--cluster", isServer(arg):
			return fmt.Errorf("%s chooses another server than the gateway: leave it out, or name the gateway with --server in front of --", name)
		case !strings.HasPrefix(arg, "-"):
			// A word after a flag may be the flag's value, or the command.
			command = command || i == 0 || !strings.HasPrefix(args[i-1], "-") || strings.Contains(args[i-1], "=")
		}
	}
	return nil
}

// isServer reports whether an argument has kubectl's flag -s, alone or after flags without
// a value, as in -Ashttp://example.com.
func isServer(arg string) bool {
	letters, ok := strings.CutPrefix(arg, "-")
	return ok && strings.HasPrefix(strings.TrimLeft(letters, "ARhiqtw"), "s")
}

// checkRecorded checks that the history includes a moment. It does not fail if that may be so
// of a resource that the caller may not list: perhaps it may read one of its objects.
func (c *client) checkRecorded(ctx context.Context, moment string, z *zone) error {
	h, err := c.history(ctx)
	if err != nil {
		return err
	}
	w, err := kube.ParseMoment(moment, time.Now())
	if err != nil {
		return err
	}
	for _, r := range h.Resources {
		for _, e := range r.Epochs {
			rv, err := kube.ParseRV(e.Span.From.ResourceVersion)
			if err != nil {
				return err
			}
			if w.RV != 0 && rv <= w.RV || w.RV == 0 && !e.Span.From.Time.After(w.At) {
				return nil
			}
		}
	}
	first := beginOf(h)
	switch {
	case len(h.Denied) > 0:
		return nil
	case first.IsZero():
		return c.errNothing(h)
	}
	return fmt.Errorf("%s is %s", z.moment(moment), refusal.BeforeRecord(z.stamp(refusal.WholeSecond(first))))
}

// runChild runs a command to its end and returns its exit code. The terminal's
// signals reach the command directly; runChild forwards the others.
func runChild(ctx context.Context, cmd *exec.Cmd) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			if sig != os.Interrupt {
				_ = cmd.Process.Signal(sig) // it may have ended
			}
			continue
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM) // as above
			ctx = context.Background()
			continue
		case err := <-done:
			if failed, ok := errors.AsType[*exec.ExitError](err); ok {
				return exitError(exitCode(failed))
			}
			return err
		}
	}
}

// exitCode returns the exit code of a process, as a shell reports it.
func exitCode(failed *exec.ExitError) int {
	if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return failed.ExitCode()
}
