// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A writer creates, updates and deletes objects at the API server, and records
// the acknowledgements.
type writer struct {
	resource   string
	path       string // of the whole collection
	kind       string // and apiVersion, of a manifest
	namespaces []string
	names      int
	pause      time.Duration // between two writes
	seed       uint64
	hands      int // concurrent writes

	http *http.Client
	base string

	mu    sync.Mutex // guards what follows
	acks  []ack
	count int // of writes
}

// tiers are the values of the label that selectors look at.
var tiers = []string{"red", "green", "blue"}

// run writes until ctx ends.
func (w *writer) run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range w.hands {
		wg.Go(func() { w.write(ctx, rand.New(rand.NewPCG(w.seed, uint64(i)))) })
	}
	wg.Wait()
}

func (w *writer) write(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		namespace := w.namespaces[r.IntN(len(w.namespaces))]
		name := fmt.Sprintf("%c-%d", 'a'+r.IntN(3), r.IntN(w.names))
		tier, node, size, act := tiers[r.IntN(len(tiers))], r.IntN(5), r.IntN(1500), r.IntN(10)
		switch {
		case act < 3:
			_ = w.remove(ctx, namespace, name) // the object may not exist, or the API server be down
		case act < 6:
			_, _ = w.create(ctx, namespace, name, tier, node, size)
		default:
			_, _ = w.update(ctx, namespace, name, tier, size)
		}
		select {
		case <-time.After(w.pause/2 + rand.N(w.pause)):
		case <-ctx.Done():
		}
	}
}

func (w *writer) url(namespace, name string) string {
	i := strings.LastIndexByte(w.path, '/')
	url := w.base + w.path[:i] + "/namespaces/" + namespace + w.path[i:]
	if name != "" {
		url += "/" + name
	}
	return url
}

// number returns a number that is unique to the write.
func (w *writer) number() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	return strconv.Itoa(w.count)
}

// create creates an object. Pods go to node 0, 1 or 2, or to the scheduler.
func (w *writer) create(ctx context.Context, namespace, name, tier string, node, size int) (uint64, error) {
	body := ""
	switch w.resource {
	case "pods":
		body = `,"spec":{"terminationGracePeriodSeconds":0,"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]`
		if node < 3 {
			body += fmt.Sprintf(`,"nodeName":"node-%d"`, node)
		}
		body += "}"
	case "configmaps":
		body = `,"data":{"pad":"` + strings.Repeat("<x>", size/3) + `"}`
	default:
		body = `,"spec":{"pad":"` + strings.Repeat("é", size/2) + `","n":` + strconv.Itoa(size) + `}`
	}
	return w.send(ctx, http.MethodPost, w.url(namespace, ""), "application/json",
		fmt.Sprintf(`{%s,"metadata":{"name":%q,"namespace":%q,"labels":{"tier":%q,"robust":"yes"},"annotations":{"n":%q}}%s}`,
			w.kind, name, namespace, tier, w.number(), body))
}

func (w *writer) update(ctx context.Context, namespace, name, tier string, size int) (uint64, error) {
	return w.send(ctx, http.MethodPatch, w.url(namespace, name), "application/merge-patch+json",
		fmt.Sprintf(`{"metadata":{"labels":{"tier":%q},"annotations":{"n":%q,"pad":%q}}}`, tier, w.number(), strings.Repeat("~", size)))
}

func (w *writer) remove(ctx context.Context, namespace, name string) error {
	_, err := w.send(ctx, http.MethodDelete, w.url(namespace, name), "application/json",
		`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)
	return err
}

// send sends a write and records that it was acknowledged.
func (w *writer) send(ctx context.Context, method, url, contentType, body string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", contentType)
	sent := time.Now()
	resp, err := w.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode/100 != 2 {
		return 0, fmt.Errorf("%s %s: %s %s", method, url, resp.Status, text)
	}
	var answer struct {
		Kind     string
		Metadata struct{ UID, ResourceVersion string }
		Details  struct{ UID string }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, err
	}
	a := ack{sent: sent, At: time.Now(), Resource: w.resource}
	if method == http.MethodDelete {
		if a.Deleted = answer.Details.UID; a.Deleted == "" {
			a.Deleted = answer.Metadata.UID
		}
	} else if a.RV, err = strconv.ParseUint(answer.Metadata.ResourceVersion, 10, 64); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acks = append(w.acks, a)
	return a.RV, nil
}

// mark writes an object, until it succeeds, and returns its RV.
func (w *writer) mark(ctx context.Context, name string) (uint64, error) {
	for {
		rv, err := w.create(ctx, w.namespaces[0], name, "red", 1, 10)
		if err == nil {
			return rv, nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return 0, err
		}
	}
}
