// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A browser is a Node process with the informer for browsers (ui/informer), which follows
// all resources on one connection. Each sync is judged as a list at any RV, and the events
// after it as a watch that continues the list, until the informer lists again.
type browser struct {
	script, url string
	env         []string // of the process

	mu      sync.Mutex // guards what follows
	follows map[string]*followed
}

// A followed is a collection that a browser follows.
type followed struct {
	*client
	stream  *exchange // the last one; nil before the first sync
	listing bool      // events are those of a list in progress
}

// newBrowser bundles the informer and its script into a folder.
func newBrowser(dir string, g *realGateway, t *texts) (*browser, error) {
	b := &browser{script: filepath.Join(dir, "informer.mjs"), url: g.URL, env: g.env(), follows: map[string]*followed{}}
	esbuild := filepath.Join("..", "..", "..", "ui", "node_modules", ".bin", "esbuild")
	cmd := exec.Command(esbuild, filepath.Join("testdata", "informer.mjs"), "--bundle", "--platform=node", "--format=esm", "--log-level=warning", "--outfile="+b.script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the informer for browsers: run 'scripts/packages ui' first? (%w) %s", err, out)
	}
	for i, res := range resources {
		b.follows[strings.NewReplacer("/apis/", "", "/api/", "").Replace(res.path)] = &followed{client: &client{
			name: fmt.Sprintf("browser-%d-%s", i, res.name), resource: res.name, path: res.path, sel: newSelector("", "", ""), start: byList0, texts: t,
		}}
	}
	return b, nil
}

// run runs the informer until ctx ends. The process ends with its input, too, which ends with
// the test.
func (b *browser) run(ctx context.Context) {
	err := b.follow(ctx)
	if ctx.Err() != nil {
		return
	}
	for _, f := range b.follows { // it is not to end
		b.mu.Lock()
		x := f.begin(byList0, 0)
		x.Items = []event{{Type: "MALFORMED", Text: err.Error()}}
		f.end(x, "Node ended")
		b.mu.Unlock()
	}
}

func (b *browser) follow(ctx context.Context) error {
	names := []string{b.script, b.url}
	for name := range b.follows {
		names = append(names, name)
	}
	slices.Sort(names[2:])
	var failure bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", names...)
	cmd.Stderr = &failure
	cmd.Env = append(os.Environ(), b.env...)
	_, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewReader(output); err == nil; {
		var text []byte
		if text, err = lines.ReadBytes('\n'); err == nil {
			err = b.take(text)
		}
	}
	_ = cmd.Process.Kill() // fails if it has ended
	return errors.Join(err, cmd.Wait(), errors.New(failure.String()))
}

// A line is what the script prints.
type line struct {
	Resource, Type  string
	Object          json.RawMessage
	ResourceVersion string            // of a sync
	Objects         []json.RawMessage // of a sync
	Phase           string            // of a state
	Message         string            // of an error
	Code            int               // of an error
	Status, Refused json.RawMessage   // of an error: the Status, and the last answer that was one
}

// answer returns what is known of the last answer that was an error, if there was one.
func (l line) answer() (a struct {
	Began time.Time
	Code  int
}) {
	_ = json.Unmarshal(l.Refused, &a) // fails if there was none
	return a
}

func (b *browser) take(text []byte) error {
	var escaped bytes.Buffer
	json.HTMLEscape(&escaped, text) // as in the API server's JSON
	var l line
	if err := json.Unmarshal(escaped.Bytes(), &l); err != nil {
		return fmt.Errorf("%w in %s", err, text)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.follows[l.Resource]
	x := f.stream
	inWatch := x != nil && !f.listing
	switch {
	case l.Type == "sync":
		return f.sync(l)
	case l.Type == "state" && l.Phase == "syncing":
		if inWatch { // see informed.clients
			x.Ended, x.Error, x.End = time.Now(), http.StatusGone, "the informer lists again"
		}
		f.listing = true
		f.move(0, false)
	case l.Type == "error":
		switch {
		case l.Code/100 == 4 && l.Code != http.StatusGone && l.Code != http.StatusTooManyRequests:
			refused := f.begin(byList0, 0)
			refused.Code = l.Code
			if answer := l.answer(); answer.Code == l.Code {
				refused.Began = answer.Began // the answer may have taken long
			}
			f.end(refused, fmt.Sprintf("%s (status %s, refused %s)", l.Message, l.Status, l.Refused))
		case inWatch && strings.HasPrefix(l.Message, "not a watch event"):
			x.Events = append(x.Events, event{Type: "MALFORMED", RV: x.place(), Text: l.Message})
		}
	case len(l.Object) == 0 || f.listing: // another state, or an event of the list
	case x == nil:
		return fmt.Errorf("%s before the first list", text)
	default:
		e, err := f.event(l.Type, l.Object)
		if err != nil {
			return err
		}
		x.Events = append(x.Events, e)
		f.move(e.RV, true)
	}
	return nil
}

// sync takes a sync as a list, and begins the watch that follows it.
func (f *followed) sync(l line) error {
	rv, err := strconv.ParseUint(l.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	x := f.begin(byList0, 0)
	x.Code, x.RV, x.Paged = http.StatusOK, rv, true
	for _, object := range l.Objects {
		e, err := f.event("ADDED", object)
		if err != nil {
			return err
		}
		x.Items = append(x.Items, e)
	}
	slices.SortFunc(x.Items, func(a, b event) int { return listOrder(a.Key, b.Key) })
	f.end(x, "sync")
	f.stream, f.listing = f.begin(resumed, rv), false
	f.stream.Code, f.stream.Joined = http.StatusOK, true
	f.end(f.stream, "so far")
	f.move(rv, true)
	return nil
}

// clients returns clients that have done so far what the informers have.
func (b *browser) clients() (all []*client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.follows {
		c := &client{name: f.name, resource: f.resource, path: f.path, sel: f.sel, start: f.start, texts: f.texts, rv: f.rv, synced: f.synced}
		for _, x := range f.exchanges {
			now := *x
			if x == f.stream && !f.listing {
				now.Ended = time.Now()
			}
			c.exchanges = append(c.exchanges, &now)
		}
		all = append(all, c)
	}
	return all
}
