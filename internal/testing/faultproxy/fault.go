// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// A Kind is a kind of request, for which faults are drawn.
type Kind string

// The kinds of requests. The gateway passes through those of clients.
const (
	Probe       Kind = "probe"     // LIST limit=1: of a reflector, or of a proof of freshness
	List        Kind = "list"      // any other LIST
	WatchList   Kind = "watchlist" // WATCH with sendInitialEvents
	Watch       Kind = "watch"
	ProofWatch  Kind = "proofwatch" // the short WATCH of a proof of freshness
	ClientList  Kind = "client list"
	ClientWatch Kind = "client watch"
	Other       Kind = "other" // discovery, access reviews, the cluster's CAs
)

// A Name names a fault.
type Name string

// The faults. On a stream they are injected after Fault.Frames frames.
const (
	None        Name = "none"
	CutBetween  Name = "cut between frames"
	CutWithin   Name = "cut within a frame"
	End         Name = "clean end between frames"
	EndWithin   Name = "clean end within a frame"
	EarlyEnd    Name = "clean end after some hundred ms"
	Stall       Name = "stall, then cut"
	HalfOpen    Name = "half-open: no answer at all, then cut"
	Pause       Name = "pause, then on"
	Delay       Name = "delayed answer"
	Drip        Name = "bytes drip"
	Duplicate   Name = "a frame twice"
	Older       Name = "an older frame again"
	Garble      Name = "garbled bytes"
	HTML        Name = "a page of HTML in place of JSON"
	Gone        Name = "410 as status"
	GoneWithin  Name = "410 as ERROR"
	FailWithin  Name = "500 as ERROR"
	TooMany     Name = "429"
	RetryAfter  Name = "429 with Retry-After"
	Burst       Name = "burst of 500 and 503"
	NoEnd       Name = "no end bookmark"
	Truncate    Name = "truncated body"
	TruncateEnd Name = "truncated body with a clean end"
	Regress     Name = "stale replica"
)

// A Fault is the fault of one request.
type Fault struct {
	Name   Name
	Frames int           // frames forwarded before it
	Part   float64       // of the frame or body, forwarded before it
	For    time.Duration // how long it takes
	Count  int           // requests of a burst; frames back; bytes of a drip
}

func (f Fault) String() string {
	return fmt.Sprintf("%s (frames %d, part %.2f, for %v, count %d)", f.Name, f.Frames, f.Part, f.For.Round(time.Millisecond), f.Count)
}

// A choice is a fault and how often it is drawn.
type choice struct {
	name   Name
	weight int
}

// menu has the possible faults of each kind of request.
var menu = map[Kind][]choice{
	Watch: {{None, 3}, {CutBetween, 12}, {CutWithin, 10}, {End, 8}, {EndWithin, 4}, {EarlyEnd, 6}, {Stall, 5}, {HalfOpen, 3},
		{Pause, 6}, {Delay, 4}, {Drip, 4}, {Duplicate, 8}, {Older, 6}, {Garble, 6}, {HTML, 3}, {Gone, 5}, {GoneWithin, 8},
		{FailWithin, 4}, {TooMany, 3}, {RetryAfter, 2}, {Burst, 4}, {Regress, 6}},
	WatchList: {{None, 30}, {CutBetween, 8}, {CutWithin, 8}, {End, 5}, {EndWithin, 3}, {Stall, 3}, {HalfOpen, 2}, {Pause, 5}, {Delay, 5},
		{Drip, 3}, {Duplicate, 6}, {Older, 3}, {Garble, 4}, {HTML, 2}, {Gone, 3}, {GoneWithin, 10}, {FailWithin, 3}, {TooMany, 4},
		{RetryAfter, 3}, {Burst, 3}, {NoEnd, 5}, {Regress, 4}},
	Probe:       {{None, 60}, {Delay, 8}, {HalfOpen, 2}, {Drip, 3}, {Truncate, 5}, {TruncateEnd, 4}, {Garble, 3}, {HTML, 3}, {Gone, 3}, {TooMany, 4}, {RetryAfter, 2}, {Burst, 4}, {Regress, 5}},
	List:        {{None, 50}, {Delay, 6}, {HalfOpen, 2}, {Drip, 3}, {Truncate, 12}, {TruncateEnd, 6}, {Garble, 4}, {HTML, 3}, {Gone, 8}, {TooMany, 4}, {RetryAfter, 2}, {Burst, 4}, {Regress, 4}},
	ProofWatch:  {{None, 50}, {CutBetween, 8}, {CutWithin, 5}, {End, 8}, {EndWithin, 3}, {Stall, 6}, {HalfOpen, 3}, {Pause, 6}, {Delay, 4}, {Duplicate, 6}, {Garble, 5}, {GoneWithin, 6}, {TooMany, 3}, {Burst, 2}, {Regress, 4}},
	ClientList:  {{None, 80}, {Delay, 6}, {Truncate, 5}, {TooMany, 3}, {Burst, 3}},
	ClientWatch: {{None, 60}, {CutBetween, 10}, {CutWithin, 10}, {End, 10}, {Delay, 5}, {TooMany, 3}},
	Other:       {{None, 80}, {Delay, 8}, {HalfOpen, 2}, {Truncate, 3}, {TooMany, 2}, {Burst, 2}},
}

// Draw returns the fault of the nth request of a kind for a resource.
func Draw(seed uint64, resource string, kind Kind, n int) Fault {
	h := fnv.New64a()
	fmt.Fprint(h, resource, "|", kind, "|", n)
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	total := 0
	for _, c := range menu[kind] {
		total += c.weight
	}
	f := Fault{Name: None}
	for at, i := r.IntN(total), 0; ; i++ {
		if at -= menu[kind][i].weight; at < 0 {
			f.Name = menu[kind][i].name
			break
		}
	}
	// Early faults are more likely than late ones.
	part := r.Float64()
	f.Frames = int(part * part * part * 150)
	if kind == ProofWatch {
		f.Frames = r.IntN(4)
	}
	f.Part = r.Float64()
	f.For = time.Duration(100+r.IntN(3000)) * time.Millisecond
	f.Count = 1 + r.IntN(6)
	return f
}
