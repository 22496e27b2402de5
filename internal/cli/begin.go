// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// A record is the history of the resources that a command reads, by their name.
type record map[string]api.Epoch

// record returns the newest epoch of each resource.
func (c *client) record(ctx context.Context) (record, error) {
	h, err := c.history(ctx)
	if err != nil {
		return nil, err
	}
	r := record{}
	for _, res := range h.Resources {
		if len(res.Epochs) > 0 {
			r[res.Resource] = res.Epochs[0]
		}
	}
	return r, nil
}

// begin returns when the record of a resource begins, if that is after a time.
func (r record) begin(resource string, after time.Time) (at time.Time, ok bool) {
	// A moment has milliseconds.
	at = r[resource].Span.From.Time.Add(time.Millisecond - 1).Truncate(time.Millisecond)
	return at, at.After(after)
}

// begins says since when resources are recorded that are not recorded since a time; "" if
// all are.
func (r record) begins(all []named, after time.Time, stamp func(time.Time) string) string {
	var late []string
	var first time.Time
	for _, n := range all {
		name := n.resource.GroupResource()
		if at, ok := r.begin(name, after); ok {
			if late = append(late, name+" "+stamp(at)); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	switch {
	case len(late) == 0:
		return ""
	case len(late) == len(all):
		return fmt.Sprintf("the recorded history begins at %s: differences since then", stamp(first))
	}
	return "recorded only since: " + strings.Join(late, ", ")
}

// inGap is how the message begins if a moment is in a gap.
const inGap = "in a gap of the recorded history: "

// gap returns the resources that have a gap around a moment, and a line about it.
func (r record) gap(resources []string, moment time.Time, stamp func(time.Time) string) (found failure) {
	var from, to time.Time
	for _, name := range resources {
		for _, g := range r[name].Gaps {
			if !g.From.Time.Before(moment) || !moment.Before(g.To.Time) {
				continue
			}
			found.resources = append(found.resources, name)
			if from.IsZero() || g.From.Time.Before(from) {
				from = g.From.Time
			}
			if g.To.Time.After(to) {
				to = g.To.Time
			}
		}
	}
	found.reason = fmt.Sprintf("%s%s; not observed between %s and %s: these two are the nearest moments that are known",
		inGap, stamp(moment), stamp(from.Truncate(time.Second)), stamp(to.Add(time.Second-1).Truncate(time.Second)))
	return found
}

// merge makes one failure of those that have a gap around the same moment.
func (f failures) merge(r record, moments []time.Time, stamp func(time.Time) string) (out failures) {
	var inAGap []string
	for _, one := range f {
		if strings.HasPrefix(one.reason, inGap) {
			inAGap = append(inAGap, one.resources...)
		}
	}
	merged := map[string]bool{}
	for _, moment := range moments {
		if found := r.gap(inAGap, moment, stamp); len(found.resources) > 1 {
			out = append(out, found)
			for _, name := range found.resources {
				merged[name] = true
			}
		}
	}
	for _, one := range f {
		if !merged[one.resources[0]] || !strings.HasPrefix(one.reason, inGap) {
			out = append(out, one)
		}
	}
	return out
}
