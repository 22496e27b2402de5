// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An apiserver is a simulated API server of ConfigMaps: what the conformance
// tests show of the real one, as far as reflectors, proofs of freshness and the
// clients of this test ask for it.
type apiserver struct {
	step uint64 // RVs of one write, at the most: others are those of other resources

	mu      sync.Mutex // guards what follows
	rand    *rand.Rand
	rv      uint64
	truth   truth
	now     state
	oldest  uint64 // the lowest RV to watch from
	asked   uint64 // RV of the last consistent read: bookmarks come so far
	down    bool
	changed chan struct{} // closed with each change
	acks    []ack
	count   int
}

func newAPIServer(seed uint64) *apiserver {
	r := rand.New(rand.NewPCG(seed, 5))
	s := &apiserver{rand: r, step: []uint64{1, 1, 3, 20}[r.IntN(4)], rv: 100, now: state{}, changed: make(chan struct{})}
	s.truth.base, s.truth.start = 100, map[string]*version{}
	s.oldest = 100
	return s
}

// write makes one random change.
func (s *apiserver) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return
	}
	r := s.rand
	s.rv += 1 + r.Uint64N(s.step)
	if r.IntN(20) == 0 {
		s.announce()
		return // something else was written
	}
	s.count++
	key := fmt.Sprintf("%c/%c%d", 'a'+r.IntN(2), 'a'+r.IntN(2), r.IntN(5))
	v := &version{RV: s.rv, Key: key, prev: s.now[key]}
	a := ack{At: time.Now(), Resource: "configmaps", RV: s.rv}
	if v.prev != nil && r.IntN(5) < 2 {
		v.Deleted, v.UID, v.JSON = true, v.prev.UID, v.prev.at(s.rv)
		delete(s.now, key)
		a.RV, a.Deleted = 0, v.UID
	} else {
		namespace, name, _ := strings.Cut(key, "/")
		uid := strconv.Itoa(s.count)
		if v.prev != nil {
			uid = v.prev.UID
		}
		v.JSON = fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","labels":{"robust":"yes","tier":%q}},"data":{"n":"%d","pad":%q}}`,
			name, namespace, uid, s.rv, tiers[r.IntN(3)], s.count, strings.Repeat("x", r.IntN(100)))
		if err := v.index(); err != nil {
			panic(err)
		}
		s.now[key] = v
	}
	s.truth.versions = append(s.truth.versions, v)
	s.acks = append(s.acks, a)
	s.announce()
}

func (s *apiserver) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// forget moves the window's begin to now, as a restart does.
func (s *apiserver) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = s.rv
}

func (s *apiserver) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down = down; !down {
		s.oldest = s.rv
	}
	s.announce()
}

// ServeHTTP implements http.Handler.
func (s *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	namespace := ""
	switch parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
	case r.Method == http.MethodPost: // SelfSubjectAccessReview
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
		return
	case r.URL.Path == "/api/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["list","watch","get"]}]}`)
		return
	case r.URL.Path == "/api/v1/configmaps":
	case len(parts) == 5 && parts[2] == "namespaces" && parts[4] == "configmaps":
		namespace = parts[3]
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	sel := newSelector(namespace, q.Get("labelSelector"), q.Get("fieldSelector"))
	if q.Get("watch") != "" {
		s.watch(w, r, q, sel)
	} else {
		s.list(w, q, sel, asksForTable(r))
	}
}

func expired(message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":"Expired","code":410}`, message)
}

func asksForTable(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "as=Table") }

// columns are what the server prints of an object. (Ages tell the clock; those
// of the real one are compared in internal/acceptance.)
const columns = `[{"name":"Name","type":"string","format":"name","description":"","priority":0}]`

// row is an object as a Table has it.
func row(key, object string) string { return fmt.Sprintf(`{"cells":[%q],"object":%s}`, key, object) }

func (s *apiserver) list(w http.ResponseWriter, q url.Values, sel selector, table bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rv, _ := strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
	limit, _ := strconv.Atoi(q.Get("limit"))
	at, start := s.rv, ""
	if q.Get("resourceVersion") == "" {
		s.asked = s.rv
	}
	if token := q.Get("continue"); token != "" {
		var t struct {
			RV    uint64
			Start string
		}
		if err := json.Unmarshal([]byte(decodeToken(token)), &t); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		at, start = t.RV, strings.TrimSuffix(strings.TrimPrefix(t.Start, "/"), "\x00")
		if sel.Namespace != "" {
			start = sel.Namespace + "/" + start
		}
		if at < s.oldest {
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, expired("The provided continue parameter is too old"))
			return
		}
	}
	if rv > s.rv {
		w.WriteHeader(http.StatusGatewayTimeout)
		return
	}
	if q.Get("resourceVersion") == "0" {
		limit = 0
	}
	var items []string
	next := ""
	for _, e := range s.truth.expectedList(sel, at) {
		if e.Key <= start && start != "" {
			continue
		}
		if limit > 0 && len(items) == limit {
			next = encodeToken(at, strings.TrimPrefix(start, sel.Namespace+"/"))
			break
		}
		start = e.Key
		if table {
			items = append(items, row(e.Key, e.Text))
		} else {
			items = append(items, strings.Replace(e.Text, `"kind":"ConfigMap","apiVersion":"v1",`, "", 1))
		}
	}
	more := ""
	if next != "" {
		more = fmt.Sprintf(`,"continue":%q`, next)
	}
	if table {
		_, _ = fmt.Fprintf(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"%s},"columnDefinitions":%s,"rows":[%s]}`+"\n", at, more, columns, strings.Join(items, ","))
		return
	}
	_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s},"items":[%s]}`+"\n", at, more, strings.Join(items, ","))
}

func (s *apiserver) watch(w http.ResponseWriter, r *http.Request, q url.Values, sel selector) {
	flush := http.NewResponseController(w).Flush
	told := columns
	frame := func(typ, object string) bool {
		if asksForTable(r) && typ != "ERROR" {
			object = fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":%s,"rows":[%s]}`, told, row("", object))
			told = "null"
		}
		_, err := fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", typ, object)
		return err == nil && flush() == nil
	}
	bookmark := func(rv uint64, end string) bool {
		return frame("BOOKMARK", fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s}}`, rv, end))
	}
	if flush() != nil {
		return
	}
	seconds, _ := strconv.Atoi(q.Get("timeoutSeconds"))
	if seconds == 0 {
		seconds = 1800
	}
	deadline := time.Now().Add(time.Duration(seconds) * time.Second)
	bookmarks := q.Get("allowWatchBookmarks") == "true"

	s.mu.Lock()
	pos, _ := strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
	initial := q.Get("sendInitialEvents") == "true"
	if initial || pos == 0 {
		pos = max(pos, s.rv)
		s.asked = max(s.asked, s.rv)
	}
	var items []event
	if initial {
		items = s.truth.expectedList(sel, pos)
	}
	oldest := s.oldest
	s.mu.Unlock()
	if !initial && pos < oldest {
		frame("ERROR", expired(fmt.Sprintf("too old resource version: %d (%d)", pos, oldest)))
		return
	}
	for _, e := range items {
		if !frame("ADDED", e.Text) {
			return
		}
	}
	if initial && bookmarks && !bookmark(pos, `,"annotations":{"k8s.io/initial-events-end":"true"}`) {
		return
	}
	start := pos
	due := time.Now().Add(time.Minute)
	if early := deadline.Add(-2 * time.Second); early.Before(due) {
		due = early
	}
	for {
		s.mu.Lock()
		down, changed, asked := s.down, s.changed, s.asked
		var events []event
		if pos < s.rv {
			events = s.truth.expected(sel, pos, s.rv)
			if n := len(s.truth.versions); n > 0 && s.truth.versions[n-1].RV > pos {
				pos = s.truth.versions[n-1].RV // the cache knows of its resource only
			}
		}
		s.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		for _, e := range events {
			if !frame(e.Type, e.Text) {
				return
			}
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case <-changed:
		case <-r.Context().Done():
			timer.Stop()
			panic(http.ErrAbortHandler)
		case <-timer.C:
			if time.Now().Before(deadline) {
				if at := max(pos, asked); bookmarks && at > start && !bookmark(at, "") {
					return
				}
				due = time.Now().Add(time.Minute)
				if deadline.Before(due) {
					due = deadline
				}
			} else {
				return
			}
		}
		timer.Stop()
	}
}
