// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheetcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// parallel is how many requests run at a time.
const parallel = 8

// progressEvery is after how many objects there is a line of progress.
const progressEvery = 100

// A step is what is done to one object.
type step struct {
	object     sheet.Object
	operations []sheet.Operation
	err        error // why nothing is done to it, or was not
}

// applyFile applies the changed cells of a file.
func (c *command) applyFile(ctx context.Context, x *sheet.File) error {
	if len(x.Links()) == 0 {
		return fmt.Errorf("%s has no worksheet of objects: it was not written by watchkeeper sheet", c.path)
	}
	objects, err := x.Edits()
	if err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	steps := make([]*step, len(objects))
	for i := range objects {
		steps[i] = &step{object: objects[i]}
	}
	if err := c.each(ctx, "planned", steps, c.plan); err != nil {
		return err
	}
	cells, changed := 0, 0
	for _, s := range steps {
		if len(s.operations) > 0 && s.err == nil {
			changed++
			cells += c.print(s)
		}
	}
	refused := c.refusals(steps)
	if cells > 0 {
		if err := c.confirm(cells, changed); err != nil {
			return err
		}
		if err := c.each(ctx, "applied", steps, c.patch); err != nil {
			return err
		}
		n := c.refusals(steps) - refused
		refused += n
		cells -= n
	} else if refused == 0 {
		c.note("no cell of %s changes anything", c.path)
	}
	if err := c.afterApply(ctx, x, steps); err != nil {
		return fmt.Errorf("%s applied, but %s is not refreshed: %w", count(cells, "cell is", "cells are"), c.path, err)
	}
	if refused > 0 {
		return fmt.Errorf("%s applied, and %s not", count(cells, "cell is", "cells are"), count(refused, "is", "are"))
	}
	if cells > 0 {
		c.note("%s applied", count(cells, "cell is", "cells are"))
	}
	return nil
}

// afterApply refreshes all tabs. A cell that was applied gets the value that the API server
// has made of it, such as 500m for a limit of 0.5.
func (c *command) afterApply(ctx context.Context, x *sheet.File, steps []*step) error {
	applied := map[[2]string]bool{}
	for _, s := range steps {
		for _, e := range s.object.Edits {
			applied[[2]string{s.object.Tab, e.Cell}] = s.err == nil && e.Refused == nil
		}
	}
	tabs := x.Links()
	for i := range tabs {
		if err := c.read(ctx, &tabs[i]); err != nil {
			return err
		}
	}
	return c.refresh(x, tabs, func(tab, cell string) bool { return applied[[2]string{tab, cell}] })
}

// each does something with steps, several at a time. It ends early only with ctx.
func (c *command) each(ctx context.Context, done string, steps []*step, do func(context.Context, *step)) error {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards n and the output
	n := 0
	slots := make(chan struct{}, parallel)
	for _, s := range steps {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			do(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			if n++; n%progressEvery == 0 && n < len(steps) {
				c.note("%s %d of %s", done, n, words.Count(len(steps), "object"))
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// plan reads an object and tries its patch.
func (c *command) plan(ctx context.Context, s *step) {
	live, err := c.cluster.get(ctx, &s.object)
	if failed, ok := errors.AsType[*refusal](err); ok && failed.Code == http.StatusNotFound {
		err = errors.New("it was deleted")
	}
	if err != nil {
		s.err = err
		return
	}
	s.operations, s.object.Edits, s.err = sheet.Patch(live, s.object)
	if s.err == nil && len(s.operations) > 0 {
		s.err = c.cluster.patch(ctx, &s.object, s.operations, true)
	}
}

// patch applies the patch of an object.
func (c *command) patch(ctx context.Context, s *step) {
	if s.err == nil && len(s.operations) > 0 {
		s.err = c.cluster.patch(ctx, &s.object, s.operations, false)
	}
}

// print prints what is to be changed, and returns the number of cells.
func (c *command) print(s *step) (n int) {
	for _, e := range s.object.Edits {
		if e.Refused == nil {
			n++
			fmt.Fprintf(c.Out, "%s  %s: %s → %s\n", termtext.Plain(s.object.Key()), termtext.Plain(e.Path), termtext.Plain(sheet.Text(e.Old)), termtext.Plain(sheet.Text(e.New)))
		}
	}
	return n
}

// refusals prints the cells that are not applied, those that were not printed before, and
// returns the number of all.
func (c *command) refusals(steps []*step) (n int) {
	for _, s := range steps {
		for i, e := range s.object.Edits {
			why := e.Refused
			if why == nil {
				why = s.err
			}
			if why == nil {
				continue
			}
			n++
			if !errors.Is(why, errPrinted) {
				c.note("not applied: %s  %s (%s): %s", s.object.Key(), e.Path, e.Cell, why)
			}
			s.object.Edits[i].Refused = errPrinted
		}
	}
	return n
}

var errPrinted = errors.New("printed")

// confirm asks whether to apply.
func (c *command) confirm(cells, objects int) error {
	if c.yes {
		return nil
	}
	in, ok := c.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return errors.New("nothing was applied: the input is no terminal to ask on: add --yes to apply the plan")
	}
	fmt.Fprintf(c.Err, "Apply %s of %s? [y/N] ", count(cells, "cell", "cells"), count(objects, "object", "objects"))
	answer, err := bufio.NewReader(in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return errors.New("nothing was applied")
}
