// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A past is what the gateway received for one resource. The proxy can send it
// again later, like a load balancer that switches to a server whose etcd was
// partitioned, or restored from a backup. Guarded by Proxy.mu.
type past struct {
	probes, lists []answer
	states        []state
	log           []logged // all events since the first state, up to upto
	upto          uint64
	columns       []byte // of the first frame of a stream; nil without Tables

	// The stale replica: the state it lists, the RV it has reached, and until
	// when it serves.
	base  state
	head  uint64
	until time.Time
}

type answer struct {
	rv   uint64
	body []byte
}

// A state is the initial events of a WatchList with its end bookmark.
type state struct {
	rv     uint64
	frames [][]byte
}

type logged struct {
	rv   uint64
	line []byte
}

// A frame is the part of a watch line that a past needs. In a Table, which a
// gateway requests, the object is inside, and the first frame of a stream has the
// columns.
type frame struct {
	Type   string
	Object struct {
		Metadata          struct{ ResourceVersion string }
		ColumnDefinitions json.RawMessage
		Rows              []struct{ Object json.RawMessage }
	}
}

// parse reads a line. The rv is 0 for an ERROR and for what is not a frame.
func parse(line []byte) (f frame, rv uint64) {
	if json.Unmarshal(line, &f) != nil {
		return f, 0
	}
	at := f.Object.Metadata
	if rows := f.Object.Rows; len(rows) == 1 {
		var inside struct {
			Metadata struct{ ResourceVersion string }
		}
		_ = json.Unmarshal(rows[0].Object, &inside) // valid JSON, as a part of the line
		at = inside.Metadata
	}
	rv, _ = strconv.ParseUint(at.ResourceVersion, 10, 64)
	return f, rv
}

const columnsName, noColumns = `"columnDefinitions":`, `"columnDefinitions":null`

// takeColumns returns the line as it would be later in its stream, and its
// columns; nil if it is not a Table.
func (f frame) takeColumns(line []byte) (bare, columns []byte) {
	columns = f.Object.ColumnDefinitions
	if len(columns) == 0 || columns[0] != '[' {
		return line, nil
	}
	return bytes.Replace(line, append([]byte(columnsName), columns...), []byte(noColumns), 1), columns
}

// asksForTable reports whether a request asks for a Table.
func asksForTable(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "as=Table") }

// follow returns a function to call with each frame of a reflector's stream. The
// log has no holes: if a stream begins after the log's end, the log and the states
// before it are dropped.
func (h *past) follow(x *exchange) (see func(line []byte)) {
	if !x.own || x.kind == ProofWatch {
		return func([]byte) {}
	}
	var initial [][]byte
	synced := x.kind != WatchList
	if after, _ := strconv.ParseUint(x.r.URL.Query().Get("resourceVersion"), 10, 64); synced {
		x.p.mu.Lock()
		h.continues(after)
		x.p.mu.Unlock()
	}
	return func(line []byte) {
		end := isEnd(line)
		f, rv := parse(line)
		line, columns := f.takeColumns(line)
		x.p.mu.Lock()
		defer x.p.mu.Unlock()
		if columns != nil {
			h.columns = columns
		}
		switch {
		case rv == 0: // an ERROR
		case !synced:
			initial = append(initial, line)
			if end {
				h.continues(rv)
				h.states = append(h.states, state{rv, initial})
				synced = true
			}
		case rv > h.upto:
			if h.upto = rv; f.Type != "BOOKMARK" && len(h.states) > 0 {
				h.log = append(h.log, logged{rv, line})
			}
		}
	}
}

// continues continues the log at the RV. If the log does not reach it, the log, the
// states and the earlier lists are dropped: events after them are missing.
func (h *past) continues(rv uint64) {
	if rv > h.upto {
		h.states, h.log, h.upto = nil, nil, rv
		h.lists = slices.DeleteFunc(h.lists, func(a answer) bool { return a.rv < rv })
	}
}

// remember keeps a complete LIST.
func (x *exchange) remember(body []byte) {
	a := answer{first(body), body}
	if !x.own || a.rv == 0 {
		return
	}
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	switch q := x.r.URL.Query(); {
	case x.kind == Probe:
		x.past.probes = append(x.past.probes, a)
	case x.kind == List && q.Get("continue") == "":
		x.past.lists = append(x.past.lists, a)
	}
}

func (h *past) staleAt(t time.Time) bool { return t.Before(h.until) }

// goBack makes the stale replica serve for a while. It reports false if there is
// no past to serve.
func (h *past) goBack(f Fault) bool {
	if len(h.states) == 0 || len(h.log) < 2 {
		return false
	}
	base := h.states[int(f.Part*float64(len(h.states)))]
	from := 0
	for from < len(h.log) && h.log[from].rv <= base.rv {
		from++
	}
	head := from + int(f.Part*float64(len(h.log)-from))
	if head >= len(h.log)-1 {
		return false // it would not be stale
	}
	h.base, h.head = base, h.log[head].rv
	h.until = time.Now().Add(f.For + time.Second)
	return true
}

// replay serves the request as the stale replica.
func (x *exchange) replay() {
	x.p.mu.Lock()
	base, head, left := x.past.base, x.past.head, time.Until(x.past.until)
	answers := x.past.lists
	if x.kind == Probe {
		answers = x.past.probes
	}
	events, columns := x.past.log, x.past.columns
	x.p.mu.Unlock()

	x.w.Header().Set("Content-Type", "application/json")
	if x.kind == Probe || x.kind == List {
		for i := len(answers) - 1; i >= 0; i-- {
			if answers[i].rv <= head {
				x.w.WriteHeader(http.StatusOK)
				x.write(answers[i].body)
				return
			}
		}
		x.w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	after, _ := strconv.ParseUint(x.r.URL.Query().Get("resourceVersion"), 10, 64)
	end := time.Now().Add(left)
	x.w.WriteHeader(http.StatusOK)
	x.write(nil)
	send := func(line []byte) {
		if asksForTable(x.r) {
			x.write(bytes.Replace(line, []byte(noColumns), append([]byte(columnsName), columns...), 1))
			columns = []byte("null")
		} else {
			x.write(unprinted(line))
		}
	}
	if x.kind == WatchList {
		for _, line := range base.frames {
			send(line)
		}
		after = base.rv
	} else if after > head && x.fault.Count%2 == 1 {
		after = base.rv // it ignores the requested RV
	}
	for _, e := range events {
		if after < e.rv && e.rv <= head {
			if time.Now().After(end) {
				break
			}
			send(e.line)
			x.hold(2 * time.Millisecond)
		}
	}
	x.hold(time.Until(end))
	x.abort()
}

// unprinted returns a frame of a Table as a frame of its object: a proof of
// freshness requests objects.
func unprinted(line []byte) []byte {
	f, _ := parse(line)
	if rows := f.Object.Rows; len(rows) == 1 {
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", f.Type, rows[0].Object)
	}
	return line
}
