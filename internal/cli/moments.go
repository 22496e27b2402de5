// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// when parses a flag with a moment. An age is resolved once, so that all requests
// see the same moment. A time without a zone is of the local zone. No moment is after a
// finished recording, whose end is "now".
func (c *client) when(ctx context.Context, flag, text string) (string, error) {
	w, err := kube.ParseMoment(text, time.Now())
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	h, err := c.history(ctx)
	if err != nil {
		return "", err
	}
	ended := h.Recording.State == api.RecordingEnded
	if text == "now" && !ended {
		return text, nil
	}
	if w, err = kube.ParseMoment(text, h.Now.Local()); err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	// A time of day shortly after the end of a recording is not that of the day before.
	begin := beginOf(h)
	if next, err := kube.ParseMoment(text, h.Now.Local().AddDate(0, 0, 1)); ended && err == nil && !w.Ago && !next.At.Equal(w.At) &&
		w.At.Before(begin) && next.At.Sub(h.Now) < begin.Sub(w.At) {
		w = next
	}
	switch {
	case w.RV != 0:
	case ended && w.At.After(h.Now.Truncate(time.Second).Add(time.Second)): // printed times have whole seconds
		return "", fmt.Errorf("%s: %s is after the end of the recording, %s", flag, text, kube.Moment{At: h.Now})
	case !ended && w.At.After(time.Now()):
		return "", fmt.Errorf("%s: %s is in the future", flag, text)
	}
	return w.String(), nil
}

// pastPath returns the path of a moment of the past below the gateway's URL, such as
// /at/rv:12031.
func (c *client) pastPath(ctx context.Context, flag, text string) (string, error) {
	moment, err := c.when(ctx, flag, text)
	if err != nil {
		return "", err
	}
	return "/at/" + moment, c.checkRecorded(ctx, moment, &zone{})
}

// between parses the flags with two moments; "" stays "". It fails if they are not in order.
// A time and a resourceVersion cannot be compared.
func (c *client) between(ctx context.Context, flag, text, thenFlag, then string) (from, to string, err error) {
	return c.ordered(ctx, flag, text, thenFlag, then, c.when)
}

// span is between for --since and --until. A second up to which changes are listed includes
// those that are printed with it.
func (c *client) span(ctx context.Context, since, until string) (from, to string, err error) {
	return c.ordered(ctx, "--since", since, "--until", until, c.endOf)
}

// endOf parses a flag with the end of a range: that of its second if it has no fraction.
func (c *client) endOf(ctx context.Context, flag, text string) (string, error) {
	moment, err := c.when(ctx, flag, text)
	w := parsed(moment)
	if err != nil || w.RV != 0 || moment == "now" || parsed(text).Ago || strings.Contains(text, ".") || w.At.Nanosecond() != 0 {
		return moment, err
	}
	if w.At = w.At.Add(time.Second - time.Millisecond); w.At.After(time.Now()) {
		return "now", nil
	}
	return w.String(), nil
}

// ordered is between, with the function that parses the second moment.
func (c *client) ordered(ctx context.Context, flag, text, thenFlag, then string, last func(ctx context.Context, flag, text string) (string, error)) (from, to string, err error) {
	if text != "" {
		if from, err = c.when(ctx, flag, text); err != nil {
			return "", "", err
		}
	}
	if then != "" {
		if to, err = last(ctx, thenFlag, then); err != nil {
			return "", "", err
		}
	}
	begin, end := parsed(from), parsed(to)
	switch {
	case from == "" || to == "" || (begin.RV == 0) != (end.RV == 0):
	case from == to, begin == end:
		err = fmt.Errorf("%s and %s are both %s: name two moments, such as %s 10m", flag, thenFlag, text, flag)
	case begin.RV > end.RV || begin.At.After(end.At):
		on := ""
		if strings.Contains(then, ":") && strings.Count(then, "-") < 2 { // a time of day, which may not have come today
			on = ", which was last on " + end.At.Format(time.DateOnly)
		}
		err = fmt.Errorf("%s %s is after %s %s%s: swap them", flag, text, thenFlag, then, on)
	}
	return from, to, err
}

// spanOf is span for a command with RESOURCEs. A resourceVersion without the one resource that
// it is of is an error.
func (c *client) spanOf(ctx context.Context, since, until, command string, resources []string) (from, to string, err error) {
	from, to, err = c.span(ctx, since, until)
	for _, side := range []struct{ flag, text, moment string }{{"--since", since, from}, {"--until", until, to}} {
		if err == nil && parsed(side.moment).RV != 0 && len(resources) != 1 {
			err = fmt.Errorf("%[2]s %[3]s: a resourceVersion is that of one resource: name it, as in 'watchkeeper %[1]s pods %[2]s %[3]s%[4]s', or use a time", command, side.flag, side.text, c.again())
		}
	}
	return from, to, err
}

// parsed returns a moment that [client.when] returned; the zero Moment for "".
func parsed(text string) kube.Moment {
	w, _ := kube.ParseMoment(text, time.Now())
	return w
}

// anHourBefore returns the moment that is an hour before another one; ok is false before a
// resourceVersion, whose time is not known.
func (c *client) anHourBefore(ctx context.Context, flag, text string) (moment string, ok bool, err error) {
	if text == "now" {
		return "1h", true, nil
	}
	if text, err = c.when(ctx, flag, text); err != nil {
		return "", false, err
	}
	w, err := kube.ParseMoment(text, time.Now())
	if err != nil || w.RV != 0 {
		return "", false, err
	}
	return kube.Moment{At: w.At.Add(-time.Hour)}.String(), true, nil
}
