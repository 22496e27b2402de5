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

// A past is what went to the gateway for one resource, so that it can be
// answered again later: as a load balancer does that switches to a server whose
// etcd was cut off, or restored from a backup. Guarded by Proxy.mu.
type past struct {
	probes, lists []answer
	states        []state
	log           []logged // all events since the first state, up to upto
	upto          uint64
	columns       []byte // that the first frame of a stream tells; nil without Tables

	// The stale replica: the state it lists, the RV it has come to, and until
	// when it is asked.
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

// A frame is what a past has to know of a line of a watch. Where it is a Table,
// as a gateway asks for it, the object is inside, and the first one of a stream
// tells the columns.
type frame struct {
	Type   string
	Object struct {
		Metadata          struct{ ResourceVersion string }
		ColumnDefinitions json.RawMessage
		Rows              []struct{ Object json.RawMessage }
	}
}

// parse reads a line. The rv is 0 for an ERROR and what is no frame.
func parse(line []byte) (f frame, rv uint64) {
	if json.Unmarshal(line, &f) != nil {
		return f, 0
	}
	at := f.Object.Metadata
	if rows := f.Object.Rows; len(rows) == 1 {
		var inside struct {
			Metadata struct{ ResourceVersion string }
		}
		_ = json.Unmarshal(rows[0].Object, &inside) // it is part of the line, and so JSON
		at = inside.Metadata
	}
	rv, _ = strconv.ParseUint(at.ResourceVersion, 10, 64)
	return f, rv
}

const columnsName, noColumns = `"columnDefinitions":`, `"columnDefinitions":null`

// takeColumns returns the line as it would be later on its stream, and the
// columns that it told; none where it is no Table.
func (f frame) takeColumns(line []byte) (bare, columns []byte) {
	columns = f.Object.ColumnDefinitions
	if len(columns) == 0 || columns[0] != '[' {
		return line, nil
	}
	return bytes.Replace(line, append([]byte(columnsName), columns...), []byte(noColumns), 1), columns
}

// asksForTable reports whether a request asks for a Table.
func asksForTable(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "as=Table") }

// follow returns a function that is to see each frame that the API server sends
// on a stream of a reflector. The log has no holes: where a stream begins behind
// its end, what was kept before is forgotten.
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

// continues has the log go on at the RV. A list from before it has no events
// behind it that could be told.
func (h *past) continues(rv uint64) {
	if rv > h.upto {
		h.states, h.log, h.upto = nil, nil, rv
		h.lists = slices.DeleteFunc(h.lists, func(a answer) bool { return a.rv < rv })
	}
}

// remember keeps a LIST that is whole.
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

// goBack has the stale replica be asked for a while. It reports false when
// there is no past to go back to.
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

// replay answers as the stale replica.
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
		after = base.rv // it does not care what it is asked for
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

// unprinted returns a frame of a Table as it is without: a proof of freshness
// asks for the objects alone.
func unprinted(line []byte) []byte {
	f, _ := parse(line)
	if rows := f.Object.Rows; len(rows) == 1 {
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", f.Type, rows[0].Object)
	}
	return line
}
