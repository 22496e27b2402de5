// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/testing/faultproxy"
)

// A summary counts what happened in rounds.
type summary struct {
	rounds, versions, requests, streams, events int
	expired                                     int // streams that ended with 410
	epochs, gaps                                int // lists of a gateway that began an epoch, that left a gap
	relists, informed                           int // lists of informers that continued an earlier one, events after lists
	faults                                      map[faultproxy.Name]int
	kills                                       map[string]int
}

// add adds a round to the counts.
func (s *summary) add(r *round, h *history) {
	if s.faults == nil {
		s.faults, s.kills = map[faultproxy.Name]int{}, map[string]int{}
	}
	s.rounds++
	for _, i := range r.proxy.Injected() {
		s.faults[i.Fault.Name]++
	}
	for _, k := range r.kills {
		s.kills[k.what]++
	}
	for _, c := range h.clients {
		s.requests += len(c.exchanges)
		before := false // there was a list of an informer
		for _, x := range c.exchanges {
			s.events += len(x.Items) + len(x.Events)
			if x.Code == 200 && (x.Verb == resumed || x.Verb == byNow || x.Verb == byWatchList || x.Verb == byWatch0) {
				s.streams++
			}
			if x.Error == 410 {
				s.expired++
			}
			if x.Joined {
				if s.informed += len(x.Events); before {
					s.relists++
				}
				before = true
			}
		}
	}
	for name, t := range h.truths {
		s.versions += len(t.versions)
		for _, e := range h.epochs[name] {
			s.epochs++
			s.gaps += len(e.Gaps)
		}
	}
}

func (s summary) String() string {
	return fmt.Sprintf("%d rounds, %d versions; %d events judged, on %d streams of %d requests, %d of them ended by 410; %d lists of a gateway that began an epoch, %d that left a gap; informers listed again %d times and emitted %d events; kills: %s; faults: %s",
		s.rounds, s.versions, s.events, s.streams, s.requests, s.expired, s.epochs, s.gaps, s.relists, s.informed, counted(s.kills), counted(s.faults))
}

// counted lists what was counted, most often first.
func counted[K ~string](counts map[K]int) string {
	total, parts := 0, []string{}
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	}) {
		total += counts[k]
		parts = append(parts, fmt.Sprintf("%d %s", counts[k], k))
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(parts, "; "))
}
