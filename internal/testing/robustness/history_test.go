// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// An event is one event of a watch, or an item of a list (as an ADDED).
type event struct {
	Type string
	RV   uint64
	Key  string // namespace/name
	UID  string
	// Text is the object's JSON, with kind and apiVersion even for a list item.
	Text string
}

func (e event) String() string { return fmt.Sprintf("%s %s at %d", e.Type, e.Key, e.RV) }

// How a client starts.
const (
	byList      = "list"       // LIST with RV unset, then WATCH from its RV
	byList0     = "list0"      // LIST at RV 0, then WATCH
	byPages     = "pages"      // LIST by pages, then WATCH
	byWatchList = "watchlist"  // WATCH with sendInitialEvents, RV unset
	byWatch0    = "watchlist0" // the same at RV 0
	byNow       = "now"        // WATCH with RV unset, without initial events
	resumed     = "watch"      // WATCH from the client's last RV
)

// An exchange is one request, or all pages of a list, with the response.
type exchange struct {
	Client   string
	Verb     string
	Resource string
	Selector selector
	Path     string
	Bookmarks,
	// Direct is set for a client of the API server itself.
	Direct bool
	// Start is the RV to watch from; 0 for other verbs.
	Start        uint64
	Timeout      time.Duration // of a watch, as requested
	Began, Ended time.Time
	// Answered is when the header of the response came; zero if that is not known, which
	// counts as Began.
	Answered time.Time
	Code     int
	// RV is that of the list, or of the end bookmark; 0 if it never came.
	RV     uint64
	Items  []event // of the list, or the initial events
	Events []event // with bookmarks
	// Paged is set for a list by pages, as if Verb is byPages.
	Paged bool `json:",omitempty"`
	// Joined is set if the stream may consist of several watches, as an informer's.
	Joined bool `json:",omitempty"`
	// Error is the code of an ERROR that ended the stream.
	Error int
	// End says in words what ended the exchange.
	End string
}

func (x *exchange) answered() time.Time {
	if x.Answered.IsZero() {
		return x.Began
	}
	return x.Answered
}

func (x *exchange) String() string {
	return fmt.Sprintf("%s: %s %s from %d at %s", x.Client, x.Verb, x.Path, x.Start, x.Began.Format("15:04:05.000"))
}

// lists reports whether the exchange begins with a list or initial events.
func (x *exchange) lists() bool { return x.Verb != resumed && x.Verb != byNow }

// current reports whether the RV is unset: the answer has to show what the API server
// has at the time.
func (x *exchange) current() bool {
	return x.Verb != byList0 && x.Verb != byWatch0 && x.Verb != resumed
}

// synced reports whether that list is complete.
func (x *exchange) synced() bool { return x.lists() && x.RV > 0 }

// from returns the RV after which events are due; ok is false if none are.
func (x *exchange) from() (rv uint64, ok bool) {
	switch {
	case x.Code != 200:
		return 0, false
	case x.lists():
		return x.RV, x.RV > 0
	case x.Verb == byNow:
		// The response does not name the start: it is right before the first event.
		if len(x.Events) == 0 {
			return 0, false
		}
		if first := x.Events[0]; first.Type == "BOOKMARK" {
			return first.RV, true
		}
		return x.Events[0].RV - 1, true
	}
	return x.Start, true
}

// place returns the RV that the stream reached: every event up to it was due.
func (x *exchange) place() uint64 {
	if n := len(x.Events); n > 0 {
		return x.Events[n-1].RV
	}
	from, _ := x.from()
	return from
}

// A gap is a span of RVs over which a gateway sent the difference of the states.
type gap struct{ From, To uint64 }

// An epoch is the time from a gateway's list that continues no earlier state to
// the next such list, with the gaps in it.
type epoch struct {
	Began time.Time
	Gaps  []gap
	Ended []time.Time // of each gap; unknown if nil
}

// An ack is a write that the API server has acknowledged.
type ack struct {
	sent, At time.Time // sent may be zero
	Resource string
	RV       uint64 // of a creation or update
	Deleted  string // UID, of a deletion
}

// A history is everything that a round recorded.
type history struct {
	truths map[string]*truth // the newest of each resource
	epochs map[string][]epoch
	// recorded has the gaps of the gateways' histories.
	recorded map[string][]gap
	clients  []*client
	acks     []ack
	stale    []timeSpan
	// refusing is when API servers may refuse the clients of gateways, in shared mode: one
	// that starts does not know RBAC before it is ready.
	refusing []timeSpan
	// revoked are lines of the gateways' logs about watches whose right was not confirmed.
	revoked []string
	// whole is set if no fault can have made a gateway lose its history.
	whole bool
	final map[string]uint64 // RV of each resource's marker
}

type timeSpan struct{ from, to time.Time }

// A violation is a broken guarantee.
type violation struct {
	guarantee string
	exchange  *exchange
	what      string
}

func (v violation) String() string {
	if v.exchange == nil {
		return v.guarantee + ": " + v.what
	}
	return fmt.Sprintf("%s: %s: %s", v.guarantee, v.exchange, v.what)
}

// texts keeps one copy of each text: many clients record the same objects.
type texts struct {
	mu  sync.Mutex
	all map[string]string
}

func (t *texts) intern(b []byte) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.all[string(b)]; ok {
		return s
	}
	s := string(b)
	t.all[s] = s
	return s
}

// dump writes the history into a folder: a line of JSON per exchange, and per
// version of the truth.
func (h *history) dump(dir string) error {
	for resource, t := range h.truths {
		var b strings.Builder
		fmt.Fprintf(&b, "epochs %v\n", h.epochs[resource])
		for ; t != nil; t = t.earlier {
			fmt.Fprintf(&b, "from %v to %v, bumped=%t: base %d, head %d, %d objects\n", t.began, t.ended, t.bumped, t.base, t.head, len(t.start))
			for _, v := range t.versions {
				fmt.Fprintf(&b, "%d %s deleted=%t %s\n", v.RV, v.Key, v.Deleted, v.JSON)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "truth-"+resource+".txt"), []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	for _, c := range h.clients {
		f, err := os.Create(filepath.Join(dir, strings.ReplaceAll(c.name, "/", "-")+".jsonl"))
		if err != nil {
			return err
		}
		enc := json.NewEncoder(f)
		for _, x := range c.exchanges {
			if err := enc.Encode(x); err != nil {
				return err
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
