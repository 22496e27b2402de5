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

// streams are the standard streams of a command.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// exitError ends the command with an exit code, without a message.
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
		Short: "A caching proxy for the Kubernetes API, with history",
		Long: `Watchkeeper is a caching proxy for the Kubernetes API. It opens one list and
watch per resource, serves any number of clients from it, and records the
cluster's history.`,
		Args:          noCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(cmd, err) })
	root.AddCommand(newServe(s), newHistory(s), newChanges(s), newDiff(s), newAt(s), newRecord(s), newOpen(s), newVersion(s))
	return root
}

// usageError adds a reference to the command's help.
func usageError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w (see '%s --help')", err, cmd.CommandPath())
}

// noCommand refuses arguments of the program itself: they are a command that does not
// exist.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	err := fmt.Errorf("unknown command %q", args[0])
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, strings.Join(similar, " or "))
	}
	return usageError(cmd, err)
}

// noArgs refuses arguments; cobra's own message would be "unknown command".
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(cmd, fmt.Errorf("%s takes no arguments, but got %q", cmd.Name(), args[0]))
	}
	return nil
}

// oneLine joins the lines of a library's multi-line error.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
