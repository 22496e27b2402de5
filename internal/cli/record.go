// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
)

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

// begin returns when the record of a resource begins, if that is after a time.
func (r record) begin(resource string, after time.Time) (at time.Time, ok bool) {
	for _, e := range r[resource] {
		if at.IsZero() || e.Span.From.Time.Before(at) {
			at = e.Span.From.Time
		}
	}
	// A moment has milliseconds.
	at = at.Add(time.Millisecond - 1).Truncate(time.Millisecond)
	return at, at.After(after)
}

// late returns the resources that are not recorded since a time, with the times at which
// their records begin, and the first of these times.
func (r record) late(resources []string, after time.Time, stamp func(time.Time) string) (late []string, first time.Time) {
	for _, name := range resources {
		if at, ok := r.begin(name, after); ok {
			if late = append(late, name+" "+stamp(at)); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return late, first
}

// begins says since when resources are recorded that are not recorded since a time; "" if
// all are.
func (r record) begins(resources []string, after time.Time, what string, stamp func(time.Time) string) string {
	switch late, first := r.late(resources, after, stamp); len(late) {
	case 0:
		return ""
	case len(resources):
		return fmt.Sprintf("the recorded history begins at %s: %s since then", stamp(first), what)
	default:
		return "recorded only since: " + strings.Join(late, ", ")
	}
}

// before returns an error if none of the resources was recorded at a time yet.
func (r record) before(resources []string, at time.Time, flag string, stamp func(time.Time) string) error {
	if late, first := r.late(resources, at, stamp); !at.IsZero() && len(late) == len(resources) {
		return fmt.Errorf("%s: nothing is recorded before %s: use a later moment", flag, stamp(first))
	}
	return nil
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

// printUnobserved prints a line for each span in a range of time in which changes of the
// resources were missed, the newest ones.
func (r record) printUnobserved(w io.Writer, resources []string, from, to time.Time, stamp func(time.Time) string) {
	lines := r.unobserved(resources, from, to, stamp)
	if more := len(lines) - maxUnobserved; more > 0 {
		lines = lines[more:]
		fmt.Fprintf(w, "%d earlier spans were not observed\n", more)
	}
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
}

// maxUnobserved is how many spans without observation are listed.
const maxUnobserved = 5

// unobserved returns a line for each span.
func (r record) unobserved(resources []string, from, to time.Time, stamp func(time.Time) string) (lines []string) {
	var gaps []api.Gap
	for _, name := range resources {
		for _, e := range r[name] {
			for _, g := range e.Gaps {
				if g.From.Time.Before(to) && from.Before(g.To.Time) {
					gaps = append(gaps, g)
				}
			}
		}
	}
	slices.SortFunc(gaps, func(a, b api.Gap) int { return a.From.Time.Compare(b.From.Time) })
	for i := 0; i < len(gaps); {
		// Of several resources, in the same outage: one that is quiet has been heard of last
		// before the outage, up to a minute.
		quiet, first, last := gaps[i].From.Time, gaps[i].From.Time, gaps[i].To.Time
		for i++; i < len(gaps) && !gaps[i].From.Time.After(last); i++ {
			first = gaps[i].From.Time
			if gaps[i].To.Time.After(last) {
				last = gaps[i].To.Time
			}
		}
		line := fmt.Sprintf("not observed between %s and %s", stamp(first), stamp(last))
		if stamp(quiet) != stamp(first) {
			line += fmt.Sprintf(" (quiet resources: from %s)", stamp(quiet))
		}
		lines = append(lines, line+": of changes in that time, only the outcome is known")
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
	return c.get(ctx, historyAPI+"/diff"+n.path(""), nil, &answer)
}

// knownNamespace returns an error if the record has nothing of the namespace.
func (c *client) knownNamespace(ctx context.Context) error {
	h, err := c.history(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(h.Resources, func(r api.ResourceHistory) bool { return r.Resource == "namespaces" }) {
		return nil // it cannot be known
	}
	var v api.Versions
	err = c.get(ctx, historyAPI+"/versions/api/v1/namespaces/"+c.namespace, url.Values{"limit": {"1"}}, &v)
	status, ok := errors.AsType[*statusError](err)
	if err == nil || ok && status.Code != 404 {
		return err
	}
	return fmt.Errorf("nothing is recorded in namespace %s", c.namespace)
}

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
		for _, e := range r[name] {
			for _, g := range e.Gaps {
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
