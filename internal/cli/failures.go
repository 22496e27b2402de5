// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
)

// failures are the resources that could not be compared, by the reason, in the order of
// the reasons.
type failures []failure

type failure struct {
	reason    string
	resources []string
}

func (f *failures) add(resource string, err error) {
	for i := range *f {
		if (*f)[i].reason == err.Error() {
			(*f)[i].resources = append((*f)[i].resources, resource)
			return
		}
	}
	*f = append(*f, failure{err.Error(), []string{resource}})
}

// print prints a line for each reason.
func (f failures) print(w io.Writer) {
	for _, one := range f {
		fmt.Fprintf(w, "watchkeeper: %s: %s\n", strings.Join(one.resources, ", "), one.reason)
	}
}

// inGap is how the message begins if a moment is in a gap.
const inGap = "in a gap of the recorded history: "

// gap returns the resources that have a gap around a moment, and a line about it.
func (r record) gap(resources []string, moment time.Time, stamp func(time.Time) string) (found failure) {
	var from, to time.Time
	for _, name := range resources {
		for _, g := range r.around(name, kube.Moment{At: moment}) {
			found.resources = append(found.resources, name)
			if from.IsZero() || g.From.Time.Before(from) {
				from = g.From.Time
			}
			if g.To.Time.After(to) {
				to = g.To.Time
			}
		}
	}
	found.reason = fmt.Sprintf("%s%s; %s: these two are the nearest moments that are known", inGap, stamp(moment), notObserved(from, to, stamp))
	return found
}

// stopped makes one failure of those whose record has ended, if recording has stopped.
func (f failures) stopped(r record, why api.Recording, stamp func(time.Time) string) (out failures) {
	var names []string
	var first, last time.Time
	for _, one := range f {
		if why.State != api.RecordingFailed || !strings.HasPrefix(one.reason, "not recorded: ") {
			out = append(out, one)
			continue
		}
		for _, name := range one.resources {
			if len(r[name]) == 0 {
				continue
			}
			end := r[name][0].Span.To.Time
			if first.IsZero() || end.Before(first) {
				first = end
			}
			if end.After(last) {
				last = end
			}
		}
		names = append(names, one.resources...)
	}
	if names != nil {
		out = append(out, failure{resources: names, reason: fmt.Sprintf("nothing is recorded since %s: %s; all of them are known until %s",
			stamp(last), why.Reason, stamp(first.Truncate(time.Second)))})
	}
	return out
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
