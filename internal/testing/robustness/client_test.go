// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// A client lists and watches in the way that start names, resumes when a stream
// ends, and records everything.
type client struct {
	name     string
	http     *http.Client
	base     string // URL of the gateway, or of the API server
	direct   bool
	resource string
	path     string // of the whole collection
	sel      selector
	start    string // byList, …
	// bookmarks requests bookmarks; byWatchList and byWatch0 require them.
	bookmarks bool
	timeout   time.Duration // timeoutSeconds
	slow      time.Duration // delay after each event
	again     bool          // starts over instead of resuming
	partial   bool          // what it holds at the end is no state: a part of the difference over a gap
	nap       time.Duration // at most, before it resumes
	texts     *texts

	mu        sync.Mutex // guards what follows
	exchanges []*exchange
	open      *exchange // the stream under way, which is not among exchanges
	rv        uint64    // the last RV received
	synced    bool
}

// run lists and watches until ctx ends.
func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		c.mu.Lock()
		synced, rv := c.synced, c.rv
		c.mu.Unlock()
		ok := false
		switch {
		case synced:
			ok = c.watch(ctx, resumed, rv)
		case c.start == byList || c.start == byList0 || c.start == byPages:
			ok = c.list(ctx)
		default:
			ok = c.watch(ctx, c.start, 0)
		}
		pause := time.Duration(0)
		if !ok || time.Since(began) < 20*time.Millisecond {
			pause = 200 * time.Millisecond
		}
		if c.nap > 0 {
			pause += rand.N(c.nap)
		}
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}
}

// place returns the client's last RV, and whether it can resume from there.
func (c *client) place() (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rv, c.synced
}

func (c *client) move(rv uint64, synced bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rv, c.synced = rv, synced
}

func (c *client) begin(verb string, start uint64) *exchange {
	return &exchange{
		Client: c.name, Verb: verb, Resource: c.resource, Selector: c.sel, Direct: c.direct,
		Bookmarks: c.bookmarks, Start: start, Began: time.Now(),
	}
}

func (c *client) end(x *exchange, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.Ended, x.End = time.Now(), why
	c.exchanges, c.open = append(c.exchanges, x), nil
}

// soFar returns a client that has done what this one has done so far.
func (c *client) soFar() *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := &client{
		name: c.name, direct: c.direct, resource: c.resource, sel: c.sel, again: c.again,
		exchanges: slices.Clip(c.exchanges), rv: c.rv, synced: c.synced,
	}
	if c.open != nil {
		x := *c.open
		x.Ended = time.Now()
		now.exchanges = append(now.exchanges, &x)
	}
	return now
}

func (c *client) get(ctx context.Context, x *exchange, q url.Values) (*http.Response, error) {
	for name, value := range map[string]string{"labelSelector": c.sel.Labels, "fieldSelector": c.sel.Fields} {
		if value != "" {
			q.Set(name, value)
		}
	}
	path := c.path
	if c.sel.Namespace != "" {
		i := strings.LastIndexByte(path, '/')
		path = path[:i] + "/namespaces/" + c.sel.Namespace + path[i:]
	}
	x.Path = path + "?" + q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+x.Path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "robustness/"+c.name)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	x.Answered = time.Now()
	if x.Code = resp.StatusCode; x.Code != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %s", resp.Status, body)
	}
	return resp, nil
}

// list sends a LIST, in pages if the client starts byPages.
func (c *client) list(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	x := c.begin(c.start, 0)
	q := url.Values{}
	switch c.start {
	case byList0:
		q.Set("resourceVersion", "0")
	case byPages:
		q.Set("limit", "7")
	}
	for {
		next, err := c.page(ctx, x, q)
		if err != nil {
			x.RV = 0
			c.end(x, err.Error())
			return false
		}
		if next == "" {
			break
		}
		q.Set("continue", next)
	}
	c.end(x, "whole")
	c.move(x.RV, true)
	return true
}

func (c *client) page(ctx context.Context, x *exchange, q url.Values) (next string, err error) {
	resp, err := c.get(ctx, x, q)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	var list struct {
		Kind, APIVersion string
		Metadata         struct{ ResourceVersion, Continue string }
		Items            []json.RawMessage
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", err
	}
	rv, err := strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return "", err
	}
	if x.RV != 0 && x.RV != rv {
		return "", fmt.Errorf("a page at %d of a list at %d", rv, x.RV)
	}
	x.RV = rv
	for _, item := range list.Items {
		// Items of built-in kinds leave out kind and apiVersion.
		if bytes.HasPrefix(item, []byte(`{"metadata":`)) {
			item = append(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, strings.TrimSuffix(list.Kind, "List"), list.APIVersion), item[1:]...)
		}
		e, err := c.event("ADDED", item)
		if err != nil {
			return "", err
		}
		x.Items = append(x.Items, e)
	}
	return list.Metadata.Continue, nil
}

func (c *client) event(typ string, object []byte) (event, error) {
	var o struct {
		Metadata struct{ Name, Namespace, UID, ResourceVersion string }
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return event{}, err
	}
	rv, err := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return event{}, err
	}
	return event{typ, rv, c.texts.intern([]byte(o.Metadata.Namespace + "/" + o.Metadata.Name)), c.texts.intern([]byte(o.Metadata.UID)), c.texts.intern(object)}, nil
}

var errEnded = errors.New("ended by the test")

// watch sends a WATCH. It reports whether the stream ended without an error.
func (c *client) watch(ctx context.Context, verb string, start uint64) bool {
	x := c.begin(verb, start)
	x.Timeout = c.timeout
	q := url.Values{"watch": {"true"}, "timeoutSeconds": {strconv.Itoa(int(c.timeout.Seconds()))}}
	if c.bookmarks {
		q.Set("allowWatchBookmarks", "true")
	}
	switch verb {
	case resumed:
		q.Set("resourceVersion", strconv.FormatUint(start, 10))
	case byWatchList, byWatch0:
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", "NotOlderThan")
		if verb == byWatch0 {
			q.Set("resourceVersion", "0")
		}
	case byNow:
		q.Set("sendInitialEvents", "false")
		q.Set("resourceVersionMatch", "NotOlderThan")
	}
	limit, cancel := context.WithTimeoutCause(ctx, c.timeout+20*time.Second, errors.New("the server does not end the watch"))
	defer cancel()
	resp, err := c.get(limit, x, q)
	if err != nil {
		c.end(x, err.Error())
		if x.Code == http.StatusGone {
			c.move(0, false)
		}
		return false
	}
	defer resp.Body.Close()
	c.mu.Lock()
	c.open = x
	c.mu.Unlock()
	err = c.follow(x, resp.Body)
	if cause := context.Cause(limit); cause != nil {
		err = cause
	}
	if ctx.Err() != nil {
		err = errEnded
	}
	c.end(x, err.Error())
	switch place := x.place(); {
	case ctx.Err() != nil: // what comes now is no longer its concern
	case x.Error != 0, x.lists() && !x.synced():
		c.move(0, false) // its RV expired, or its state is incomplete
	case place > 0:
		c.move(place, !c.again)
	}
	return err == io.EOF && x.Error == 0
}

// follow records a stream and returns what ended it.
func (c *client) follow(x *exchange, body io.Reader) error {
	frames := watchread.Lines(body)
	for {
		f, err := frames.Next()
		if err != nil {
			if errors.Is(err, watchread.ErrMalformed) {
				c.reject(x, f.Raw)
			}
			return err // a frame that was cut off is not an event
		}
		if f.Type == "ERROR" {
			var status struct {
				Code    int
				Message string
			}
			if err := json.Unmarshal(f.Object, &status); err != nil {
				status.Message = err.Error()
			}
			c.mu.Lock()
			x.Error = max(status.Code, 1)
			c.mu.Unlock()
			return fmt.Errorf("ERROR %d: %s", status.Code, status.Message)
		}
		e, err := c.event(f.Type, f.Object)
		if err != nil {
			c.reject(x, f.Raw)
			return err
		}
		c.receive(x, e)
		time.Sleep(c.slow)
	}
}

// receive adds an event to a stream.
func (c *client) receive(x *exchange, e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !x.lists() || x.synced():
		x.Events = append(x.Events, e)
		c.rv, c.synced = e.RV, true
	case e.Type == "BOOKMARK" && strings.Contains(e.Text, `"k8s.io/initial-events-end":"true"`):
		x.RV = e.RV
		c.rv, c.synced = e.RV, true
	default:
		x.Items = append(x.Items, e)
	}
}

// reject adds a malformed frame to a stream.
func (c *client) reject(x *exchange, raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.Events = append(x.Events, event{Type: "MALFORMED", Text: string(raw)})
}
