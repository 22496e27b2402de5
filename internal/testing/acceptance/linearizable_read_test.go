// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// read does one consistent read at the gateway and judges it.
func (w *worker) read(ctx context.Context, q query) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	floor := q.store.floor()
	var got *reading
	var err error
	switch how := w.rnd.IntN(8); {
	case how < 3 || how < 5 && q.narrowed:
		got, err = w.list(ctx, q, "")
	case how < 5:
		got, err = w.list(ctx, q, fmt.Sprint("limit=", []int{1, 20, 40, 1000}[w.rnd.IntN(4)]))
	case how < 7:
		got, err = w.streamingList(ctx, q)
	default:
		err = w.watch(ctx, q, floor)
	}
	w.judge(q, floor, got, err)
}

// judge checks the outcome of a read that began at floor. got is nil for a watch.
func (w *worker) judge(q query, floor floor, got *reading, err error) {
	var violation violation
	switch {
	case errors.As(err, &violation):
		w.t.Errorf("%s", violation)
	case err != nil && w.disturbed:
		w.skips.Add(1)
		time.Sleep(100 * time.Millisecond)
	case err != nil:
		w.t.Errorf("%s: %v\n%s", q.url(""), err, w.gateway.Log())
	default:
		w.reads.Add(1)
	}
	if got == nil {
		return
	}
	if wrong := floor.wrong(q, got); wrong != "" {
		w.t.Errorf("%s: %s", got.how, wrong)
	}
	if got.rv < w.seen[q.store] {
		w.t.Errorf("%s: the client has read at %d, and now at %d", got.how, w.seen[q.store], got.rv)
	}
	w.seen[q.store] = got.rv
	if earlier := w.last[q.url("")]; earlier != nil {
		if wrong := backwards(earlier, got); wrong != "" {
			w.t.Errorf("%s: %s; it was %s", got.how, wrong, earlier.how)
		}
	}
	w.last[q.url("")] = got
}

// A violation is an error that is not a failed read.
type violation string

func (v violation) Error() string { return string(v) }

// url returns the query's path and parameters, with the parameters in more.
func (q query) url(more string) string {
	return q.store.path(q.namespace) + "?" + strings.Trim(q.selector+"&"+more, "&")
}

func (w *worker) open(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.gateway.URL+url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return nil, fmt.Errorf("%s: %s %s", url, resp.Status, body)
	}
	return resp.Body, nil
}

// list reads a list with all its pages.
func (w *worker) list(ctx context.Context, q query, more string) (*reading, error) {
	got := &reading{how: "list " + q.url(more), items: map[string]uint64{}}
	for next := ""; ; {
		if next != "" {
			w.pages.Add(1)
		}
		body, err := w.open(ctx, q.url(more+next))
		if err != nil {
			return nil, err
		}
		var page struct {
			Metadata struct{ ResourceVersion, Continue string }
			Items    []struct {
				Metadata struct{ Name, Namespace, ResourceVersion string }
			}
		}
		err = json.NewDecoder(body).Decode(&page)
		body.Close()
		if err != nil {
			return nil, err
		}
		rv := parseRV(page.Metadata.ResourceVersion)
		if next != "" && rv != got.rv {
			return nil, violation(fmt.Sprintf("%s: a page at %d, after one at %d", got.how, rv, got.rv))
		}
		got.rv = rv
		for _, o := range page.Items {
			got.items[o.Metadata.Namespace+"/"+o.Metadata.Name] = parseRV(o.Metadata.ResourceVersion)
		}
		if page.Metadata.Continue == "" {
			return got, nil
		}
		next = "&continue=" + page.Metadata.Continue
	}
}

// streamingList reads a streaming list up to its end bookmark.
func (w *worker) streamingList(ctx context.Context, q query) (*reading, error) {
	url := q.url("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=60")
	got := &reading{how: "streaming list " + url, items: map[string]uint64{}}
	body, err := w.open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	err = frames(body, url, func(f frame) (done bool, err error) {
		switch {
		case f.Type == "ADDED":
			got.items[f.key()] = f.rv()
		case f.Type == "BOOKMARK" && f.Object.Metadata.Annotations["k8s.io/initial-events-end"] == "true":
			got.rv = f.rv()
			return true, nil
		default:
			return true, violation(fmt.Sprintf("%s: among the initial events: %s", url, f.text))
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// watch opens a watch with RV unset: it has to bring every acknowledged state,
// and no earlier one.
func (w *worker) watch(ctx context.Context, q query, floor floor) error {
	url := q.url("watch=1&timeoutSeconds=60")
	state := &reading{how: "watch " + url, items: map[string]uint64{}, rv: floor.rv}
	if floor.wrong(q, state) == "" {
		return nil // nothing to wait for
	}
	byID := map[string]*key{}
	for k := range floor.acked {
		byID[k.id()] = k
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := w.open(ctx, url)
	if err != nil {
		return err
	}
	defer body.Close()
	// It may be right without an event: an object may have been deleted after the
	// check above and before the watch began.
	var mu sync.Mutex // guards state
	right := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return floor.wrong(q, state) == ""
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		defer cancel()
		for began, pause := time.Now(), 3*time.Second; time.Since(began) < 45*time.Second; pause = time.Second / 5 {
			select {
			case <-time.After(pause): // at first for events
			case <-ctx.Done():
				return
			}
			if right() {
				return
			}
		}
	})
	err = frames(body, url, func(f frame) (done bool, err error) {
		if k := byID[f.key()]; k != nil {
			q.store.mu.Lock()
			for _, o := range k.ops[:floor.acked[k]+1] {
				if f.rv() < o.rv || f.rv() == o.rv && k.ops[floor.acked[k]].deleted {
					err = violation(fmt.Sprintf("%s: %s at %d; its writes are %+v, the first %d had been acknowledged",
						url, f.Type, f.rv(), k.ops, floor.acked[k]+1))
				}
			}
			q.store.mu.Unlock()
			if err != nil {
				return true, err
			}
		}
		mu.Lock()
		if state.items[f.key()] = f.rv(); f.Type == "DELETED" {
			delete(state.items, f.key())
		}
		mu.Unlock()
		return right(), nil
	})
	if err == nil || ctx.Err() == nil {
		return err
	}
	if wrong := floor.wrong(q, state); wrong != "" {
		return violation(fmt.Sprintf("%s: %s", state.how, wrong))
	}
	return nil
}

// frames passes the frames of a watch to each until it reports done.
func frames(body io.Reader, url string, each func(frame) (done bool, err error)) error {
	for in := watchread.Lines(body); ; {
		f, err := readFrame(in)
		if err != nil {
			return err
		}
		if f.Type == "ERROR" {
			return fmt.Errorf("%s: %s", url, f.text)
		}
		if done, err := each(f); done || err != nil {
			return err
		}
	}
}
