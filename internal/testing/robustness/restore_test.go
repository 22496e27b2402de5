// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"slices"
	"time"
)

// After a restore of etcd there are several truths, which may have the same RVs:
//
//	first    ─── 10 ─── backup 20 ─── 30 ─ 40      the last 20 are lost
//	restored ─── 10 ─── backup 20 ──────────── 25' ─ 35'
//	bumped   ─── 10 ─── backup 20 ──────────────────────────── 100000'
//
// An exchange belongs to one of them: its list and all its events. A stream of the
// first one has to end before the first event of another. What a client makes of a
// stream that it resumes after the restore is another matter: see crossed.

// truth returns the truth that an exchange is judged by: the newest that explains it. If
// none does, it is the newest one that the API server may have had.
func (h *history) truth(x *exchange) *truth {
	newest := h.truths[x.Resource]
	if newest.earlier == nil {
		return newest
	}
	possible := h.possible(x)
	for _, t := range possible {
		if h.explains(t, x) {
			return t
		}
	}
	if !x.Direct {
		slices.Reverse(possible)
		for _, t := range paths(possible, h.gapsOf(x.Resource, anyGap)) {
			if h.explains(t, x) {
				return t
			}
		}
		slices.Reverse(possible)
	}
	return possible[0]
}

func anyGap(gap, time.Time) bool { return true }

// possible returns the truths that the API server may have had, as the client is to see
// it, the newest first. A gateway may serve the state before a restore until its
// watch ends, but not if the RV is unset.
func (h *history) possible(x *exchange) (all []*truth) {
	for t := h.truths[x.Resource]; t != nil; t = t.earlier {
		over := x.current() && !t.ended.IsZero() && t.ended.Before(x.Began) && !h.isStale(x)
		if !t.began.After(x.Ended) && !over {
			all = append(all, t)
		}
	}
	if all == nil { // the API server is down
		all = append(all, h.truths[x.Resource])
	}
	return all
}

// explains reports whether an exchange is as it would be if there were only this truth.
func (h *history) explains(t *truth, x *exchange) bool {
	if t.head > 0 && x.place() > t.head || t.consistent(x) != "" {
		return false
	}
	from, ok := x.from()
	if ok && t.then != nil {
		if x.Verb == byNow && from < t.over.To {
			from = min(from, t.over.From) // see epoch.start
		}
		if from > t.over.From || x.place() <= t.over.From {
			return false // no stream begins inside a gap
		}
	}
	return !ok || h.compareWith(t, x, from).none()
}

// paths returns what streams may show: each truth, the oldest first, alone, and continued
// by later ones over a gap.
func paths(truths []*truth, gaps []gap) (all []*truth) {
	for i, t := range truths {
		all = append(all, t)
		for _, then := range paths(truths[i+1:], gaps) {
			for _, g := range gaps {
				if joined := t.join(g, then); joined != nil {
					all = append(all, joined)
				}
			}
		}
	}
	return all
}

// join returns the truth continued by another one after a gap. It returns nil if a
// gateway that knows the state at the gap's start can see in its list at the gap's end that
// this is another history: an object has another version than at the start, with an
// RV that is not above it. If all are above, the list looks like one of the same history
// (ADR 2).
func (t *truth) join(g gap, then *truth) *truth {
	if t.head > 0 && g.From > t.head || then.then != nil && g.To > then.over.From {
		return nil
	}
	before := t.at(g.From)
	for key, v := range then.at(g.To) {
		if old := before[key]; v.RV <= g.From && (old == nil || old.UID != v.UID || old.RV != v.RV) {
			return nil
		}
	}
	return &truth{
		base: t.base, start: t.start, versions: t.versions,
		began: t.began, ended: t.ended, head: then.head, over: g, then: then,
	}
}

// lasted reports whether the API server had the truth at a time.
func (t *truth) lasted(at time.Time) bool {
	return !at.Before(t.began) && (t.ended.IsZero() || !at.After(t.ended))
}

// isStale reports whether the API server answered with stale data during an exchange.
func (h *history) isStale(x *exchange) bool {
	return slices.ContainsFunc(h.stale, func(s timeSpan) bool {
		return x.Began.Before(s.to) && s.from.Before(x.Ended)
	})
}

// crossed reports whether a client may have gone from one truth to another without being
// told: it was answered after a restore, and resumed at an RV that both have. Neither a
// gateway nor an API server can tell which of the two the client means
// (docs/semantics.md). After a restore with a revision bump they can.
func (h *history) crossed(chain []*exchange) bool {
	for t := h.truths[chain[0].Resource]; t.earlier != nil; t = t.earlier {
		if !t.bumped && h.crossedTo(t, chain) {
			return true
		}
	}
	return false
}

func (h *history) crossedTo(t *truth, chain []*exchange) bool {
	before := false // the client may have seen another truth
	for _, x := range chain {
		if before && x.Verb == resumed && !x.answered().Before(t.earlier.ended) && h.explains(t, x) {
			return true
		}
		before = before || !h.explains(t, x)
	}
	return false
}

// mixedPages reports whether the pages of a list may be of several truths: a continue
// token has an RV, too. After a restore without a bump, a gateway whose watch appears to
// be open passes the first page through and has the others from before.
func (h *history) mixedPages(x *exchange) bool {
	for t := h.truths[x.Resource]; t.earlier != nil; t = t.earlier {
		if (x.Paged || x.Verb == byPages) && !t.bumped && !x.Ended.Before(t.began) {
			return true
		}
	}
	return false
}
