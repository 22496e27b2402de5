// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/refusal"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

// failing returns whether a Pod fails at a moment, and why. It is nil for other objects, and
// if the Pod did not exist then or the moment is not recorded. For a moment in a gap it returns
// the answer for the begin of the gap, and that time. deleted is set if the Pod was deleted
// just after the moment.
func (o *historyOptions) failing(ctx context.Context, n named, at string, deleted bool, rec record) (f *api.Failing, known time.Time, err error) {
	if o.format != "text" || n.resource.GroupResource() != "pods" {
		return nil, known, nil
	}
	f, err = o.failingAt(ctx, n, at)
	status, refused := errors.AsType[*refusal.Error](err)
	if refused && status.Code == http.StatusGone {
		if gaps := rec.around(n.resource.GroupResource(), parsed(at)); len(gaps) > 0 {
			begin, end := gaps[0].From.Time, gaps[0].To.Time
			if !deleted {
				fmt.Fprintf(o.err, "whether the Pod failed at %s is not known: %s\n", o.moment(at), refusal.NotObserved(begin, end, o.stamp))
			}
			f, err = o.failingAt(ctx, n, kube.Moment{At: begin}.String())
			status, refused = errors.AsType[*refusal.Error](err)
			known = begin
		}
	}
	if refused && (status.Code == http.StatusNotFound || status.Code == http.StatusGone || status.Code == http.StatusServiceUnavailable) {
		return nil, known, nil // 503: nothing is recorded any more
	}
	return f, known, err
}

func (o *historyOptions) failingAt(ctx context.Context, n named, at string) (*api.Failing, error) {
	query := url.Values{}
	if at != "" {
		query.Set("at", at)
	}
	var f api.Failing
	err := o.get(ctx, historyAPI+"/failing"+n.path(o.namespace), query, &f)
	return &f, err
}

// printFailing prints the answer of failing, unless the Pod exists and all is well. known is when it was so, if
// that is not the moment that was asked for. deletion is that of the Pod, nil if it was not
// deleted.
func (o *historyOptions) printFailing(w io.Writer, f *api.Failing, known time.Time, deletion *api.Change) error {
	if f == nil || deletion == nil && len(f.Containers) == 0 && f.Reason+f.Message == "" && f.Unschedulable == nil && f.Disruption == nil && f.Finding == nil && !f.Failing && !f.FailedBefore {
		return nil
	}
	is, lines := "is", []string{o.headOf(f)}
	switch {
	case deletion != nil:
		is, lines[0] = "was", o.deleted(f, deletion)
	case !known.IsZero():
		is, lines[0] = "was", "at "+o.stamp(known)+": "+lines[0]
	}
	if why := change.Because(f.Reason, f.Message); why != "" {
		lines = append(lines, why)
	}
	if d := f.Disruption; d != nil {
		message := d.Message
		if message == f.Message {
			message = "" // the kubelet writes it to both
		}
		lines = append(lines, change.Because("DisruptionTarget since "+o.stamp(d.Since), d.Reason, message))
	}
	for _, c := range f.Containers {
		lines = append(lines, o.crash(c, is))
	}
	for i, line := range lines {
		if i > 0 {
			line = "  " + termtext.Plain(line)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// headOf describes a Pod that exists.
func (o *historyOptions) headOf(f *api.Failing) string {
	line, restarts := o.paint(green, "not failing"), fmt.Sprintf("; restarts: %d", f.Restarts)
	switch u := f.Unschedulable; {
	case f.Failing:
		line = o.paint(red, "failing since "+o.failingSince(f))
	case f.FailedBefore:
		line = "terminating; was " + o.paint(red, "failing since "+o.failingSince(f))
	case u != nil:
		return change.Because(o.paint(red, "cannot be scheduled since "+o.stamp(u.Since)), termtext.Plain(change.Because(u.Message)))
	case f.Finding != nil:
		line = termtext.Plain(f.Finding.Title)
		if !f.Finding.Since.IsZero() {
			line += " since " + o.stamp(f.Finding.Since)
		}
		line = o.paint(yellow, line)
	}
	return line + restarts
}

// deleted describes how a Pod was when it was deleted.
func (o *historyOptions) deleted(f *api.Failing, c *api.Change) string {
	var was []string
	if f.Node != "" {
		was = append(was, "was on "+f.Node)
	}
	if f.Phase == "Failed" {
		was = append(was, "phase Failed")
	}
	if u := f.Unschedulable; u != nil {
		was = append(was, change.Because("could not be scheduled since "+o.stamp(u.Since), u.Message))
	}
	if f.Failing || f.FailedBefore {
		was = append(was, "failing since "+o.failingSince(f))
	}
	was = append(was, fmt.Sprintf("restarts: %d", f.Restarts))
	when := o.stamp(c.Time)
	if !c.NotBefore.IsZero() {
		when = "between " + o.stamp(c.NotBefore) + " and " + when
	}
	return "deleted " + when + " (" + termtext.Plain(strings.Join(was, "; ")) + ")"
}

func (o *historyOptions) failingSince(f *api.Failing) string {
	if f.SinceKnown {
		if !f.NotBefore.IsZero() {
			return o.stamp(f.Since) + " (not before " + o.stamp(f.NotBefore) + ")"
		}
		return o.stamp(f.Since)
	}
	return "before " + o.stamp(f.Since) + ", when the recording starts"
}

// crash describes how a container ended last, or why it cannot start.
func (o *historyOptions) crash(c api.FailingContainer, is string) string {
	line := c.Name + " " + is + " " + c.State
	if c.ExitCode != nil {
		if c.Waiting != "" {
			line += " (" + c.Waiting + ")"
		}
		line += fmt.Sprintf("; it ended %s with exit code %d", o.stamp(c.FinishedAt), *c.ExitCode)
		if c.Signal != 0 {
			line += fmt.Sprintf(" (signal %d)", c.Signal)
		}
	}
	return change.Because(line, c.Reason, c.Message)
}
