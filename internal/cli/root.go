// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is the watchkeeper command: flags, configuration, logging,
// signals and exit codes, one file per command.
//
// Main runs a command line on the given streams and returns the exit code, so
// that scripts can run it inside a test binary. Standard output has the result;
// everything else, including the log, goes to standard error. An error is one
// line that begins with "watchkeeper:" and says what to do next, and exit code 1.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/get"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/serve/server"
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

// Main runs the command line args, of which the first is the path of the program, and
// returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = termtext.NewWriter(stderr, false)
	root := newRoot(streams{in: stdin, out: stdout, err: stderr})
	name := naming(args[0], root)
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	if code, ok := errors.AsType[get.ExitError](err); ok {
		return int(code)
	}
	fmt.Fprintln(stderr, "watchkeeper: "+name(oneLine(explain(err))))
	return 1
}

// naming returns a function that makes the command lines in a text those that the user types, and
// applies it to all help. They differ if the program is kubectl's plugin: kubectl runs it as
// kubectl-watchkeeper.
func naming(path string, root *cobra.Command) (name func(text string) string) {
	if strings.TrimSuffix(filepath.Base(path), ".exe") != "kubectl-watchkeeper" {
		return func(text string) string { return text }
	}
	const typed = "kubectl watchkeeper"
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: typed}
	var commands []string
	for _, cmd := range root.Commands() {
		commands = append(commands, cmd.Name())
	}
	// Some texts have the name already, from cobra.
	line := regexp.MustCompile(`(\bkubectl )?\bwatchkeeper (` + strings.Join(commands, "|") + `)\b`)
	name = func(text string) string { return line.ReplaceAllString(text, typed+" $2") }
	var apply func(cmd *cobra.Command)
	apply = func(cmd *cobra.Command) {
		cmd.Long, cmd.Example = name(cmd.Long), name(cmd.Example)
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = name(f.Usage) })
		for _, sub := range cmd.Commands() {
			apply(sub)
		}
	}
	apply(root)
	return name
}

// Command returns all commands without streams, for programs that document them.
func Command() *cobra.Command { return newRoot(streams{}) }

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
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); cmd == root && len(args) > 0 {
			return noCommand(cmd, args) // the flags are those of a command that does not exist
		}
		return usageError(cmd, err)
	})
	root.AddCommand(newServe(s), newGet(s), newSheet(s), newHistory(s), newStory(s), newDiagnose(s), newChanges(s), newDiff(s), newAt(s), newRecord(s), newOpen(s), newVersion(s), completion.Command())
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

// explain returns the text of an error, with a hint if there is a usual remedy.
func explain(err error) string {
	if le, ok := errors.AsType[*server.ListenError](err); ok {
		return le.Error() + ": " + listenHint(le)
	}
	for _, flag := range []string{"--www: ", "--accept-", "--reject-"} {
		if !strings.HasPrefix(err.Error(), flag) {
			continue
		}
		if flag == "--www: " {
			return err.Error() + ": use a readable directory with --www"
		}
		return err.Error() + ": use regular expressions in Go's syntax, separated by commas"
	}
	return err.Error()
}

func listenHint(le *server.ListenError) string {
	switch {
	case le.Flag == "unix-socket" && errors.Is(le.Err, syscall.EADDRINUSE):
		return "another process uses this socket; stop it, or choose another path with --unix-socket"
	case le.Flag == "unix-socket":
		return "choose another path with --unix-socket"
	case errors.Is(le.Err, syscall.EADDRINUSE) && le.Flag == "port":
		return "choose another port with --port (0 uses a free one)"
	case errors.Is(le.Err, syscall.EADDRINUSE):
		return "choose another address with --admin-listen (127.0.0.1:0 uses a free port, an empty value disables the listener)"
	case errors.Is(le.Err, fs.ErrPermission) && le.Flag == "port":
		return "ports below 1024 need privileges; choose another port with --port"
	case le.Flag == "port":
		return "check --address and --port"
	}
	return "check --" + le.Flag
}

const (
	// debugVerbosity is the -v from which our own debug lines are shown.
	debugVerbosity = 4

	// maxLibraryVerbosity keeps client-go from logging requests and responses, with the
	// tokens of TokenReviews, as it does from 6 on: by klog's own verbosity, and by the level
	// of the slog handler, which its contextual loggers ask.
	maxLibraryVerbosity = 5
)

// newLogger returns the logger of a long-running command, which client-go uses as
// well. klog has one logger per process, so only the command line may call this.
func newLogger(out io.Writer, format string, verbosity int) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: errorInOneLine}
	if verbosity >= debugVerbosity {
		// logr counts -v downwards from slog's info.
		opts.Level = slog.Level(-min(max(verbosity, -int(slog.LevelDebug)), maxLibraryVerbosity))
	}
	var handler slog.Handler
	switch format {
	case "text":
		handler = slog.NewTextHandler(out, opts)
	case "json":
		handler = slog.NewJSONHandler(out, opts)
	default:
		return nil, fmt.Errorf("--log-format %q is unknown: use text or json", format)
	}
	log := slog.New(handler)

	var flags flag.FlagSet
	klog.InitFlags(&flags)
	if err := flags.Set("v", strconv.Itoa(min(verbosity, maxLibraryVerbosity))); err != nil {
		return nil, fmt.Errorf("klog: %w", err)
	}
	klog.SetSlogLogger(log)
	return log, nil
}

// errorInOneLine is a ReplaceAttr that keeps the stack trace of a library's error out
// of the log: slog formats errors with %+v.
func errorInOneLine(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(oneLine(err.Error()))
	}
	return a
}
