// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/refusal"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/spans"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// isEvents reports whether a resource is Events. Commands about everything leave them out,
// because they describe the changes of other objects.
func isEvents(resource string) bool {
	return resource == "events" || resource == "events.events.k8s.io"
}

// deniedOf returns the recorded resources that the caller may not list, except Events.
func deniedOf(h *api.History) []string {
	return slices.DeleteFunc(slices.Clone(h.Denied), isEvents)
}

// A record is the history of the resources that a command reads, by their name. Its epochs
// are the newest first.
type record map[string][]api.Epoch

// record returns the epochs of each resource.
func (c *client) record(ctx context.Context) (record, error) {
	h, err := c.history(ctx)
	if err != nil {
		return nil, err
	}
	r := record{}
	for _, res := range h.Resources {
		if len(res.Epochs) > 0 {
			r[res.Resource] = append(r[res.Resource], res.Epochs...)
		}
	}
	return r, nil
}

// beginOf returns when the record of the first resource begins.
func beginOf(h *api.History) time.Time {
	var all []api.Epoch
	for _, r := range h.Resources {
		all = append(all, r.Epochs...)
	}
	return earliest(all)
}

// earliest returns when the first of the epochs begins; zero if there are none.
func earliest(epochs []api.Epoch) (begin time.Time) {
	for _, e := range epochs {
		if begin.IsZero() || e.Span.From.Time.Before(begin) {
			begin = e.Span.From.Time
		}
	}
	return begin
}

// begin returns when the record of a resource begins, if that is after a time.
func (r record) begin(resource string, after time.Time) (at time.Time, ok bool) {
	// A moment has milliseconds.
	at = earliest(r[resource]).Add(time.Millisecond - 1).Truncate(time.Millisecond)
	return at, at.After(after)
}

// late returns the resources that are not recorded since a time, with the times at which
// their records begin, and the first and the last of these times.
func (r record) late(resources []string, after time.Time, stamp func(time.Time) string) (late []string, first, last time.Time) {
	for _, name := range resources {
		if at, ok := r.begin(name, after); ok {
			if late = append(late, name+" "+stamp(at)); first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
	}
	return late, first, last
}

// begins says since when resources are recorded that are not recorded since a time; "" if
// all are.
func (r record) begins(resources []string, after time.Time, what string, stamp func(time.Time) string) string {
	switch late, first, last := r.late(resources, after, stamp); len(late) {
	case 0:
		return ""
	case len(resources):
		all := ""
		if stamp(last) != stamp(first) { // as in an export
			all = fmt.Sprintf(", that of all %s at %s", words.Count(len(late), "resource"), stamp(last))
		}
		return fmt.Sprintf("the recorded history begins at %s%s: %s since then", stamp(first), all, what)
	default:
		return "recorded only since: " + strings.Join(late, ", ")
	}
}

// before returns an error if none of the resources was recorded at a moment yet.
func (r record) before(resources []string, w kube.Moment, flag string, stamp func(time.Time) string) error {
	if late, first, _ := r.late(resources, w.At, stamp); !w.At.IsZero() && len(late) == len(resources) {
		return fmt.Errorf("%s is %s", flag, refusal.BeforeRecord(stamp(refusal.WholeSecond(first))))
	}
	if w.RV == 0 || len(resources) != 1 { // a resourceVersion is that of one resource
		return nil
	}
	var first api.Moment
	var least uint64
	for _, e := range r[resources[0]] {
		if rv, err := kube.ParseRV(e.Span.From.ResourceVersion); err == nil && (least == 0 || rv < least) {
			first, least = e.Span.From, rv
		}
	}
	if w.RV >= least {
		return nil
	}
	return fmt.Errorf("%s %d of %s is %s", flag, w.RV, resources[0], refusal.BeforeRecord(first.ResourceVersion+" ("+stamp(first.Time)+")"))
}

// around returns the gaps of a resource that a moment is in.
func (r record) around(resource string, w kube.Moment) (gaps []api.Gap) {
	for _, e := range r[resource] {
		for _, g := range e.Gaps {
			from, err := kube.ParseRV(g.From.ResourceVersion)
			to, err2 := kube.ParseRV(g.To.ResourceVersion)
			byRV := err == nil && err2 == nil && from < w.RV && w.RV < to
			if byRV || g.From.Time.Before(w.At) && w.At.Before(g.To.Time) {
				gaps = append(gaps, g)
			}
		}
	}
	return gaps
}

// after returns an error if a resourceVersion is newer than the record of the resource.
func (r record) after(resource string, w kube.Moment, flag string) error {
	if len(r[resource]) == 0 || w.RV == 0 {
		return nil
	}
	if head, err := kube.ParseRV(r[resource][0].Span.To.ResourceVersion); err == nil && head < w.RV {
		return fmt.Errorf("%s %d: the newest recorded resourceVersion of %s is %d", flag, w.RV, resource, head)
	}
	return nil
}

// printUnobserved prints in which of the spans that do not end before a time changes may have
// been missed, or came late: a line for each outage, of many the newest, and one for the end of
// the record. The silence of the API server is [client.reportSilence]'s.
func (c *client) printUnobserved(ctx context.Context, spans []api.UnobservedSpan, after time.Time, stamp func(time.Time) string) {
	var gaps []api.UnobservedSpan
	var stopped []string
	var last time.Time // a quiet resource has been heard of last before recording stopped
	for _, s := range spans {
		switch {
		case s.To.Before(after): // what a gap has led to is listed at its end
		case isGap(s):
			gaps = append(gaps, s)
		case s.Reason == api.RecordingStopped:
			if stopped = append(stopped, s.Resource+" "+stamp(s.From)); s.From.After(last) {
				last = s.From
			}
		}
	}
	lines := outages(gaps, stamp)
	if more := len(lines) - maxUnobserved; more > 0 {
		lines = lines[more:]
		fmt.Fprintf(c.err, "%s not observed: -o json lists them\n", words.Count(more, "earlier span"))
	}
	for _, line := range lines {
		fmt.Fprintln(c.err, line)
	}
	if stopped == nil {
		return
	}
	if h, err := c.history(ctx); err == nil && h.Recording.State == api.RecordingFailed {
		fmt.Fprintf(c.err, "nothing is recorded since %s: %s\n", stamp(last), h.Recording.Reason)
		return
	}
	fmt.Fprintf(c.err, "not recorded since: %s\n", strings.Join(stopped, ", "))
}

// isGap reports whether a span is a gap, of either kind.
func isGap(s api.UnobservedSpan) bool { return s.Reason == api.InGap || s.Reason == api.Late }

// maxUnobserved is how many outages are listed.
const maxUnobserved = 5

// outages returns a line for each outage: the gaps of several resources that overlap.
func outages(gaps []api.UnobservedSpan, stamp func(time.Time) string) (lines []string) {
	for _, outage := range spans.Join(gaps, api.UnobservedSpan.Bounds) {
		// A resource that is quiet was observed last before the others, up to twenty seconds.
		latest, reasons, noAnswer := outage.Of[len(outage.Of)-1].From, map[string]bool{}, false
		for _, gap := range outage.Of {
			reasons[gap.Reason], noAnswer = true, noAnswer || gap.NoAnswer
		}
		line := refusal.NotObserved(outage.From, outage.To, stamp)
		if stamp(latest) != stamp(outage.From) {
			line += fmt.Sprintf(" (some resources: from %s)", stamp(latest))
		}
		if noAnswer {
			line += ", because the API server did not answer"
		}
		switch {
		case !reasons[api.Late]:
			line += ": of changes in that time, only the outcome is known"
		case !reasons[api.InGap]:
			line += ": changes in that time have the time of its end"
		default:
			line += ": of changes in that time, what is known has the time of its end"
		}
		lines = append(lines, line)
	}
	return lines
}

// inRecorded says which resources are recorded: others may have changed.
func inRecorded(names []string) string {
	if len(names) > maxNames {
		return fmt.Sprintf(" in the %d recorded resources", len(names))
	}
	return " in the recorded resources (" + strings.Join(names, ", ") + ")"
}

// maxNames is how many resources a line names. The default of --record selects fewer.
const maxNames = 16

// groupResources returns the names of resources.
func groupResources(all []named) (names []string) {
	for _, n := range all {
		names = append(names, n.resource.GroupResource())
	}
	return names
}

// recordedOf returns the gateway's reason if a resource is not recorded.
func (c *client) recordedOf(ctx context.Context, n named) error {
	rec, err := c.record(ctx)
	if err != nil || len(rec[n.resource.GroupResource()]) > 0 {
		return err
	}
	var answer api.Differences
	return c.get(ctx, historyAPI+"/diff"+n.path(c.namespace), nil, &answer)
}

// knownNamespace returns an error if the record has nothing of the namespace, or if that cannot
// be asked; nil if Namespaces are not recorded, because then it cannot be known.
func (c *client) knownNamespace(ctx context.Context) error {
	rec, err := c.record(ctx)
	if err != nil || len(rec["namespaces"]) == 0 {
		return err
	}
	var v api.Versions
	err = c.get(ctx, historyAPI+"/versions/api/v1/namespaces/"+c.namespace, url.Values{"limit": {"1"}}, &v)
	if !isNotFound(err) {
		return err
	}
	return fmt.Errorf("nothing is recorded in namespace %s since %s, when the record begins", c.namespace, cmp.Or(c.times, &zone{}).stamp(earliest(rec["namespaces"])))
}

// existed returns an error if the namespace did not exist at a moment; nil if that cannot be known.
func (c *client) existed(ctx context.Context, moment string, at time.Time) error {
	rec, err := c.record(ctx)
	if err != nil || len(rec["namespaces"]) == 0 {
		return err
	}
	body, err := c.open(ctx, "/at/"+moment+"/api/v1/namespaces/"+c.namespace, nil)
	if err == nil {
		body.Close()
	}
	if !isNotFound(err) {
		return nil
	}
	return fmt.Errorf("namespace %[1]s did not exist at %[2]s: 'watchkeeper history ns/%[1]s' says when it did", c.namespace, cmp.Or(c.times, &zone{}).stamp(at))
}

// unknownNamespace returns an error if an object was not found because nothing is recorded of its
// namespace.
func (c *client) unknownNamespace(ctx context.Context, n named) error {
	if !n.namespaced {
		return nil
	}
	err := c.knownNamespace(ctx)
	if _, failed := errors.AsType[*refusal.Error](err); failed { // it cannot be known
		return nil
	}
	return err
}

// failures are the resources that could not be compared, by the reason, in the order of
// the reasons.
type failures []failure

type failure struct {
	reason    string
	cause     metav1.CauseType
	resources []string
}

func (f *failures) add(resource string, err error) {
	one := failure{reason: strings.TrimPrefix(err.Error(), resource+": "), resources: []string{resource}}
	if status, ok := errors.AsType[*refusal.Error](err); ok {
		one.cause = status.Cause()
	}
	for i := range *f {
		if (*f)[i].reason == one.reason {
			(*f)[i].resources = append((*f)[i].resources, resource)
			return
		}
	}
	*f = append(*f, one)
}

// print prints a line for each reason.
func (f failures) print(w io.Writer) {
	for _, one := range f {
		which := strings.Join(one.resources, ", ")
		if n := len(one.resources); n > maxNames {
			which = words.Count(n, "resource")
		}
		fmt.Fprintf(w, "watchkeeper: %s: %s\n", which, one.reason)
	}
}

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
	found.reason = refusal.InGap(from, to, stamp)
	return found
}

// stopped makes one failure of those whose record has ended, if recording has stopped.
func (f failures) stopped(r record, why api.Recording, stamp func(time.Time) string) (out failures) {
	var names []string
	var first, last time.Time
	for _, one := range f {
		if why.State != api.RecordingFailed || one.cause != past.RecordEnded {
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
		if one.cause == past.NotObserved {
			inAGap = append(inAGap, one.resources...)
		}
	}
	merged := map[string]bool{}
	for _, moment := range moments {
		if found := r.gap(inAGap, moment, stamp); len(found.resources) > 1 {
			if !slices.ContainsFunc(out, func(f failure) bool { return f.reason == found.reason }) { // both moments may be in one
				out = append(out, found)
			}
			for _, name := range found.resources {
				merged[name] = true
			}
		}
	}
	for _, one := range f {
		if !merged[one.resources[0]] || one.cause != past.NotObserved {
			out = append(out, one)
		}
	}
	return out
}
