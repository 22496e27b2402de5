// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
)

// An ExitError is a failure that has been printed; its value is the exit code.
type ExitError int

// Error implements error.
func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Options are what the command needs from its caller.
type Options struct {
	genericiooptions.IOStreams
	UserAgent string
	// Guard returns a writer to w that keeps texts of the cluster from controlling a terminal.
	Guard func(w io.Writer) io.Writer
	// Moment returns the path of a moment of the past below a gateway's URL, such as
	// /at/rv:12031, from the text of --at.
	Moment func(ctx context.Context, flags *connect.Flags, text string) (string, error)
}

// A command is one run of get.
type command struct {
	Options
	flags            *connect.Flags
	factory          cmdutil.Factory
	kubectlOut       struct{ io.Writer } // standard output of kubectl's command
	program          string              // as the user calls it
	at               string
	speed            float64
	plain            bool
	warningsAsErrors bool
}

// New returns the command.
func New(o Options) *cobra.Command {
	c := &command{Options: o, flags: connect.NewFlags()}
	c.flags.UserAgent, c.flags.Err = o.UserAgent, o.ErrOut
	c.flags.WithDeprecatedPasswordFlag().WithWarningPrinter(o.IOStreams)
	c.factory = cmdutil.NewFactory(c.flags)
	c.kubectlOut.Writer = o.Out
	s := o.IOStreams
	s.Out = &c.kubectlOut
	cmd := get.NewCmdGet("kubectl", c.factory, s) // kubectl api-resources has no counterpart here
	kubectl := cmd.Run
	cmd.Run = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.program = cmd.Root().DisplayName()
		return c.report(c.run(cmd, args, kubectl))
	}
	cmd.Example = example
	cmd.Long += "\n\n" + additions
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		fmt.Fprintf(o.ErrOut, "error: %v\nSee '%s --help' for usage.\n", err, cmd.CommandPath())
		return ExitError(cmdutil.DefaultErrorExitCode)
	})
	f := cmd.Flags()
	f.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	f.StringVar(&c.at, "at", "", "read the past from a gateway: an age such as 10m, a time, or a resourceVersion")
	f.Float64Var(&c.speed, "speed", 0, "with --at and --watch: replay the past at so many times its speed; 0 prints its changes at once, in a terminal it is 10")
	f.BoolVar(&c.plain, "plain", false, "with --watch in a terminal: print a line for each change, for screen readers, instead of a table that changes")
	f.BoolVar(&c.warningsAsErrors, "warnings-as-errors", false, "Treat warnings received from the server as errors and exit with a non-zero exit code")
	c.flags.AddTo(f)
	addVerbosity(f)
	completion.Add(cmd, completion.Server{Flags: c.flags, Connect: c.flags.Choose}, completion.Options{Objects: true, Moments: []string{"at"}})
	return cmd
}

const (
	additions = `With --watch in a terminal, tables update in place; several resources are allowed.

The server is the one of --server or WATCHKEEPER_SERVER, else the gateway on this
machine if it serves the cluster of the current context, else the API server of the
context. WATCHKEEPER_SERVER=none excludes a gateway.`

	example = `  watchkeeper get pods
  watchkeeper get deploy,rs,pods -n shop -w
  watchkeeper get pods -A -o wide --at 10m
  watchkeeper get deployment/web -o yaml`
)

// addVerbosity adds kubectl's -v and --vmodule.
func addVerbosity(f *pflag.FlagSet) {
	var all flag.FlagSet
	klog.InitFlags(&all)
	for _, name := range []string{"v", "vmodule"} {
		f.AddGoFlag(all.Lookup(name))
	}
}

// A fatal is the panic with which kubectl's command ends when it fails.
type fatal struct {
	message string
	code    int
}

// panicOnFatal makes kubectl's packages panic instead of ending the process.
var panicOnFatal = sync.OnceFunc(func() {
	cmdutil.BehaviorOnFatal(func(message string, code int) { panic(fatal{message, code}) })
})

// report prints an error as kubectl does, and returns an [ExitError] in its place.
func (c *command) report(err error) (out error) {
	exit, known := errors.AsType[ExitError](err)
	switch {
	case err == nil:
		return nil
	case known:
		return exit
	}
	panicOnFatal()
	defer func() { out = c.recovered(recover()) }()
	cmdutil.CheckErr(err)
	return nil
}

// recovered returns the error of a panic of kubectl's.
func (c *command) recovered(v any) error {
	f, ok := v.(fatal)
	if !ok {
		panic(v)
	}
	if f.message != "" {
		fmt.Fprintln(c.ErrOut, strings.TrimSuffix(f.message, "\n"))
	}
	return ExitError(f.code)
}

// run runs the command once its flags are parsed.
func (c *command) run(cmd *cobra.Command, args []string, kubectl func(*cobra.Command, []string)) error {
	warnings := rest.NewWarningWriter(c.ErrOut, rest.WarningWriterOptions{Deduplicate: true, Color: printers.AllowsColorOutput(c.ErrOut)})
	rest.SetDefaultWarningHandler(warnings)
	live := c.isLive(cmd) && len(args) > 0
	if c.speed < 0 || c.speed > 0 && c.at == "" {
		return errors.New("--speed is that of the past, and more than 0: use it with --at and --watch")
	}
	if c.at == "" && cmd.Flags().Changed("at") {
		return errors.New("--at is empty: use an age such as 10m, a time, or a resourceVersion")
	}
	end, err := c.connect(cmd.Context(), live)
	if err != nil {
		return err
	}
	defer end()
	if live {
		return c.live(cmd, args)
	}
	if err := c.kubectl(cmd, args, kubectl); err != nil {
		return err
	}
	switch n := warnings.WarningCount(); {
	case !c.warningsAsErrors || n == 0:
		return nil
	case n == 1:
		return errors.New("1 warning received")
	default:
		return fmt.Errorf("%d warnings received", n)
	}
}

// isForPeople reports whether the output is read by people: a table, names, or anything in a
// terminal. kubectl writes column headers and names as the API server sends them. Other
// output is for programs, and keeps all characters.
func (c *command) isForPeople(cmd *cobra.Command) bool {
	format, _, _ := strings.Cut(cmdutil.GetFlagString(cmd, "output"), "=")
	return isTerminal(c.Out) || slices.Contains([]string{"", "wide", "name", "custom-columns", "custom-columns-file"}, format) &&
		cmdutil.GetFlagString(cmd, "raw") == "" && cmdutil.GetFlagString(cmd, "template") == ""
}

// kubectl runs kubectl's command.
func (c *command) kubectl(cmd *cobra.Command, args []string, run func(*cobra.Command, []string)) (err error) {
	if c.isForPeople(cmd) {
		c.kubectlOut.Writer = c.Guard(c.Out)
	}
	panicOnFatal()
	defer func() {
		if v := recover(); v != nil {
			err = c.recovered(v)
		}
	}()
	run(cmd, args)
	return nil
}
