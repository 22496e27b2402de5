// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable"
)

// TestRandomTerminal: after random changes, filters, orders, moves and faults, what remains on
// the terminal is what a new list prints.
func TestRandomTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	w := newWorld(t, 10)
	term := newTerminal(t, 80, 50)
	c := w.command()
	c.Prefix = false
	term.run(c)
	term.wait(`^live`)
	random := rand.New(rand.NewPCG(1, 3))
	keys := []string{"s", "S", "Down", "Up", "End", "Home", "Space", "PgDn", "?"}
	for i := range 300 {
		name := fmt.Sprintf("web-%02d", random.IntN(20))
		switch random.IntN(30) {
		case 0:
			w.api.CutWatches()
		case 1:
			w.api.CutWatches()
			w.api.Expire()
		case 2, 3, 4, 5:
			if _, ok := w.api.All("pods")["ns/"+name]; ok {
				w.api.Delete("pods", "ns/"+name)
			}
		case 6:
			w.deployment("web", fmt.Sprintf("%d/9", random.IntN(10)))
		case 7, 8, 9:
			term.Keys(keys[i%len(keys)], keys[i%len(keys)]) // twice, so that it is neither paused nor in the help
		default:
			w.pod(name, "0/1", strings.Repeat("x", random.IntN(30)+1))
		}
		if i%10 == 0 {
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		}
	}
	w.deployment("zz", "9/9")
	w.pod("zz", "1/1", "Last") // in the order of some columns, it is not the last row
	term.wait(`^zz +9-9`)
	term.wait(`^zz +1-1 +Last`)
	term.Keys("Escape")
	for range 3 { // until there is no order
		if strings.ContainsAny(term.screen(), "↑↓") {
			term.Keys("s")
			time.Sleep(200 * time.Millisecond)
		}
	}
	term.Keys("q")
	text := term.wait(`^\$$`)
	_, shown, _ := strings.Cut(text, "$ get\n")
	shown, _, _ = strings.Cut(shown, "\n$")
	if d := cmp.Diff(strings.Fields(w.listed(t, c)), strings.Fields(shown)); d != "" {
		t.Errorf("-list +terminal\n%s\n%s", d, text)
	}
}

// listed is what lines in words begin with: the tables.
func (w *world) listed(t *testing.T, c command) string {
	t.Helper()
	o, err := c.options()
	if err != nil {
		t.Fatal(err)
	}
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o.Plain, o.Out = true, out
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := livetable.Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	out.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
