// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// streams are what a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// exitError ends the command with a code of its own and nothing printed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the command line args, without the program's name, and returns
// the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(streams{in: stdin, out: stdout, err: stderr})
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	fmt.Fprintln(stderr, "watchkeeper: "+oneLine(explain(err)))
	return 1
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "watchkeeper",
		Short: "Keep the watch on a Kubernetes cluster",
		Long: `Watchkeeper opens one list and watch per resource against a Kubernetes API
server and serves the Kubernetes API from there to any number of clients.`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(cmd, err) })
	root.AddCommand(newServe(s), newHistory(s), newDiff(s), newAt(s), newVersion(s))
	return root
}

// usageError adds where to read on.
func usageError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w (see '%s --help')", err, cmd.CommandPath())
}

// noArgs refuses arguments in a sentence; cobra's own answer to one is
// "unknown command".
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(cmd, fmt.Errorf("%s takes no arguments, but got %q", cmd.Name(), args[0]))
	}
	return nil
}

// oneLine folds an error that a library spread over several lines.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
