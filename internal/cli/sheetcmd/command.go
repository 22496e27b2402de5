// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package sheetcmd is "watchkeeper sheet": it writes objects to an .xlsx file, and applies
// the cells that were changed there. Package sheet has the rules.
//
// A file is written to a temporary one next to it, which then takes its place, so that it is
// never half. Nothing is applied before all patches have passed a dry run and the user has
// seen the plan.
package sheetcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/watchkeeper/watchkeeper/internal/cli/completion"
	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// Options are what the command needs from its caller.
type Options struct {
	In        io.Reader
	Out, Err  io.Writer
	UserAgent string
}

// A command is one run.
type command struct {
	Options
	flags                    *connect.Flags
	columns, selector        string
	all, apply, yes, discard bool
	columnsSet, selectorSet  bool
	cluster                  *cluster
	path                     string
	data                     []byte // of the file; nil if there is none
}

// New returns the command.
func New(o Options) *cobra.Command {
	c := &command{Options: o, flags: connect.NewFlags()}
	c.flags.UserAgent, c.flags.Err = o.UserAgent, o.Err
	cmd := &cobra.Command{
		Use:   "sheet FILE.xlsx [KIND...]",
		Short: "Write objects to a spreadsheet, and apply what was changed in it",
		Long: `Write objects to an .xlsx file, a worksheet for each kind, or refresh the file.
A refresh keeps notes, formulas, the order of the rows and cells that were changed
and not applied; without a KIND it refreshes all worksheets.

With --apply, compute the formulas, print what the changed cells change in the
cluster, ask, and apply it. Each patch is tried in a dry run first, and tests the
value that was written to the file: an object that was changed meanwhile is not
changed again. Status, names, objects and arrays are read-only; an empty cell
removes a value. Formulas with functions that are not supported are refused.

` + connection,
		Example: `  watchkeeper sheet shop.xlsx deployments -n shop
  watchkeeper sheet nodes.xlsx nodes --columns 'metadata.labels.pool,spec.unschedulable'
  watchkeeper sheet shop.xlsx --apply`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || !strings.EqualFold(filepath.Ext(args[0]), ".xlsx") {
				return fmt.Errorf("sheet needs the name of a file that ends in .xlsx (see '%s --help')", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c.columnsSet, c.selectorSet = cmd.Flags().Changed("columns"), cmd.Flags().Changed("selector")
			return c.run(cmd.Context(), args[0], args[1:])
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&c.apply, "apply", false, "apply the cells that were changed")
	f.BoolVarP(&c.yes, "yes", "y", false, "with --apply: do not ask")
	f.BoolVar(&c.discard, "discard", false, "overwrite cells that were changed and not applied")
	f.StringVar(&c.columns, "columns", "", "paths of the columns, such as spec.replicas,metadata.labels['a.b/c'],spec.containers[0].image; the default depends on the kind")
	f.StringVarP(&c.selector, "selector", "l", "", "only objects whose labels match, such as app=web")
	f.BoolVarP(&c.all, "all-namespaces", "A", false, "objects of all namespaces")
	c.flags.AddTo(f)
	if n := f.Lookup("namespace"); n != nil {
		n.Usage = "namespace; the default is that of the current context"
	}
	completion.Add(cmd, completion.Server{Flags: c.flags, Connect: c.flags.Choose}, completion.Options{File: "xlsx"})
	return cmd
}

const connection = `The server is the one of --server or WATCHKEEPER_SERVER, else the gateway on this
machine if it serves the cluster of the current context, else the API server of the
context.`

// memory is about how many bytes of memory a file may take.
const memory = 2 << 30

func (c *command) run(ctx context.Context, path string, kinds []string) (err error) {
	switch {
	case c.apply && (len(kinds) > 0 || c.columnsSet || c.selectorSet || c.all):
		return fmt.Errorf("--apply applies the changed cells of a file: leave kinds, --columns, --selector and --all-namespaces out")
	case c.apply && c.discard:
		return fmt.Errorf("--apply and --discard exclude each other")
	case c.yes && !c.apply:
		return fmt.Errorf("--yes is for --apply")
	}
	c.path = path
	if c.data, err = os.ReadFile(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	if _, err := c.flags.Choose(ctx); err != nil {
		return err
	}
	if c.cluster, err = newCluster(c.flags); err != nil {
		return err
	}
	if c.data == nil {
		return c.create(ctx, kinds)
	}
	x, err := sheet.Open(sheet.NewBudget(ctx, memory), c.data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range x.Problems() {
		c.note("%s: %s", p.Tab, p.Message)
	}
	c.noteOpen()
	if c.apply {
		return c.applyFile(ctx, x)
	}
	tabs, err := c.choose(ctx, x.Links(), kinds)
	if err != nil {
		return err
	}
	var drop func(tab, cell string) bool
	if c.discard {
		drop = func(string, string) bool { return true }
	}
	return c.refresh(x, tabs, drop)
}

// note prints a line to standard error.
func (c *command) note(format string, args ...any) {
	fmt.Fprintln(c.Err, termtext.Plain(fmt.Sprintf(format, args...)))
}

// noteOpen says that LibreOffice or Excel has the file open: they do not see a change.
func (c *command) noteOpen() {
	dir, name := filepath.Split(c.path)
	for _, lock := range []string{".~lock." + name + "#", "~$" + name} {
		if _, err := os.Stat(filepath.Join(dir, lock)); err == nil {
			c.note("%s is open in another program: save it there first, and open it again afterwards", name)
			return
		}
	}
}

// create writes a new file.
func (c *command) create(ctx context.Context, kinds []string) error {
	if c.apply {
		return fmt.Errorf("%s does not exist: write it first, with kinds such as deployments", c.path)
	}
	if len(kinds) == 0 {
		return fmt.Errorf("%s does not exist: name the kinds that it should have, such as deployments", c.path)
	}
	tabs, err := c.choose(ctx, nil, kinds)
	if err != nil {
		return err
	}
	book := sheet.Workbook{Tabs: tabs}
	file, err := book.XLSX(sheet.NewBudget(ctx, memory))
	if err != nil {
		return err
	}
	if err := c.save(file); err != nil {
		return err
	}
	c.report("wrote", tabs)
	return nil
}

// refresh writes the objects of tabs to the file; see [sheet.File.Refresh].
func (c *command) refresh(x *sheet.File, tabs []sheet.Tab, drop func(tab, cell string) bool) error {
	data, kept, err := x.Refresh(tabs, drop)
	if err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	if err := c.save(data); err != nil {
		return err
	}
	c.report("refreshed", tabs)
	if kept > 0 && !c.apply { // --apply lists them, with the reasons
		c.note("%s kept: apply with --apply, or overwrite with --discard", count(kept, "changed cell was not applied and is", "changed cells were not applied and are"))
	}
	return nil
}

func (c *command) report(what string, tabs []sheet.Tab) {
	var parts []string
	for i := range tabs {
		parts = append(parts, fmt.Sprintf("%d %s", len(tabs[i].Rows), tabs[i].Resource.Resource))
	}
	c.note("%s %s: %s", what, c.path, strings.Join(parts, ", "))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// save puts a new file in the place of the old one, unless that has changed since it was read.
func (c *command) save(data []byte) (err error) {
	now, err := os.ReadFile(c.path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if string(now) != string(c.data) {
		return fmt.Errorf("%s was changed by another program meanwhile, and was not written: run the command again", c.path)
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(c.path); err == nil {
		mode = info.Mode().Perm()
	}
	target := c.path
	if resolved, err := filepath.EvalSymlinks(c.path); err == nil {
		target = resolved
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".watchkeeper-*.xlsx")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name()) //nolint:errcheck // the error is returned
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	return err
}
