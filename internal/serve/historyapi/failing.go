// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/findings"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// failing returns whether a Pod fails at a moment, since when, and why. The Pod's own status
// has only its last crash.
func (c *call) failing() (any, error) {
	t, _, err := c.target()
	if err != nil {
		return nil, err
	}
	if t.Resource.GroupResource() != "pods" || t.Name == "" {
		return nil, refuseBad("%s is not the path of a Pod, such as /api/v1/namespaces/default/pods/web-0", c.path)
	}
	when, err := c.when("at", "now")
	if err != nil {
		return nil, err
	}
	ctx, key := c.r.Context(), kube.MakeKey(t.Namespace, t.Name)
	state, err := c.locate(t.Resource, when)
	if err != nil {
		return nil, err
	}
	state.At = c.lastKnown(state.At)
	o, err := state.Stream.Get(ctx, state.RV, key)
	if err != nil {
		return nil, err
	}
	if o == nil {
		return nil, refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "there was no pod %q at %s", key, past.Stamp(state.At))
	}
	seen, err := observed(ctx, state.Stream, key, state.RV)
	if err != nil {
		return nil, err
	}
	pod, err := podOf(o, seen)
	if err != nil {
		return nil, err
	}
	out := api.Failing{
		Failing: change.Failing(pod, state.At), Containers: []api.FailingContainer{}, Node: pod.Spec.NodeName,
		Phase: string(pod.Status.Phase), Reason: pod.Status.Reason, Message: pod.Status.Message,
	}
	for _, condition := range pod.Status.Conditions {
		why := &api.PodCondition{Since: condition.LastTransitionTime.UTC(), Reason: condition.Reason, Message: condition.Message}
		switch {
		case condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue:
			out.Disruption = why
		case condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable && condition.Status == corev1.ConditionFalse:
			out.Unschedulable = why
		}
	}
	for _, s := range change.Containers(pod) {
		out.Restarts += s.RestartCount
		if container, ok := failingContainer(s); ok {
			out.Containers = append(out.Containers, container)
		}
	}
	if !out.Failing {
		out.Finding = findingOf(t.Resource, o, state.At)
	}
	budget := maxCompared
	if pod.DeletionTimestamp != nil {
		first, err := c.requested(state, key, &budget)
		if err != nil {
			return nil, err
		}
		if out.Finding != nil && first.Before(out.Finding.Since) && !first.IsZero() {
			out.Finding.Since = first
		}
		if state, out.FailedBefore, err = c.beforeDeletion(state, key, o.UID); err != nil {
			return nil, err
		}
	}
	if out.Failing || out.FailedBefore {
		out.Since, out.NotBefore, out.SinceKnown, err = c.failingSince(state, key, o.UID, &budget)
	}
	return out, err
}

// findingOf returns the most important finding about a Pod, as its object alone has it; nil if
// there is none.
func findingOf(r kube.Resource, o *scan.Object, at time.Time) *api.PodFinding {
	s := &findings.State{At: at}
	s.Add(r, o)
	found := s.Find()
	if len(found) == 0 {
		return nil
	}
	return &api.PodFinding{Title: strings.TrimPrefix(found[0].Title, "1 Pod "), Since: found[0].Since}
}

// beforeDeletion returns the last state before the deletion of a Pod was requested that
// terminates in a state, and whether it failed then. It is false if that is not known.
func (c *call) beforeDeletion(state past.State, key kube.Key, uid string) (before past.State, failed bool, err error) {
	ctx, st := c.r.Context(), state.Stream
	before = state
	from, compared := st.Span().From, 0
	for e, err := range versionsBackward(ctx, st, key, from.RV, state.RV) {
		if err != nil || e.Type == kube.Deleted || e.Object.UID != uid {
			return before, false, err
		}
		pod, err := podOf(e.Object, e.At)
		if err != nil || pod.DeletionTimestamp == nil {
			before.RV, before.Since = e.Object.RV, e.At
			return before, err == nil && change.Failing(pod, before.At), err
		}
		before.At = e.At
		if compared++; compared >= maxCompared || e.Type == kube.Added {
			return before, false, nil
		}
	}
	o, err := st.Get(ctx, from.RV, key)
	if err != nil || o == nil {
		return before, false, err
	}
	pod, err := podOf(o, from.At)
	before.RV, before.Since = from.RV, from.At
	return before, err == nil && o.UID == uid && change.Failing(pod, before.At), err
}

// requested returns when the deletion of an object that terminates in a state was first requested,
// as its versions say; zero if they do not. A kubelet requests that of a Pod again when its
// containers have ended, if a finalizer holds it.
func (c *call) requested(state past.State, key kube.Key, budget *int) (at time.Time, err error) {
	for e, err := range versionsBackward(c.r.Context(), state.Stream, key, state.Stream.Span().From.RV, state.RV) {
		var o struct{ Metadata metav1.ObjectMeta }
		if err != nil || e.Type == kube.Deleted || json.Unmarshal([]byte(e.Object.JSON), &o) != nil || o.Metadata.DeletionTimestamp == nil {
			return at, err
		}
		grace := int64(0)
		if o.Metadata.DeletionGracePeriodSeconds != nil {
			grace = *o.Metadata.DeletionGracePeriodSeconds
		}
		at = change.Requested(o.Metadata.DeletionTimestamp.Time, grace).UTC()
		if *budget--; *budget <= 0 || e.Type == kube.Added {
			return at, nil
		}
	}
	return at, nil
}

// requestedSince asks the history since when the objects of a finding terminate.
func (f *finder) requestedSince(one *findings.Finding, out *api.Finding) error {
	var times []time.Time
	for _, o := range one.Objects {
		state, ok := f.stateOf(o.Resource, o.Key)
		if !ok || f.live[o.Resource] != nil || f.failing <= 0 {
			return nil
		}
		at, err := f.requested(state, o.Key, &f.failing)
		if err != nil || at.IsZero() {
			return err
		}
		times = append(times, at)
	}
	one.Last(times)
	out.Since, out.Others, out.OthersSince = slices.MinFunc(times, time.Time.Compare), one.Others, one.OthersSince
	return nil
}

// deletedSince asks the history when the subject of a finding was deleted.
func (f *finder) deletedSince(one *findings.Finding, out *api.Finding) error {
	state, ok := f.stateOf(one.Subject.Resource, one.Subject.Key)
	if !ok || f.live[one.Subject.Resource] != nil {
		return nil
	}
	last, err := state.Stream.LastVersions(f.page.ctx, one.Subject.Key, 0, state.RV, 1)
	if err == nil && len(last) > 0 && last[0].Type == kube.Deleted {
		out.Since, out.NotBefore, out.SinceKnown = last[0].At.UTC(), f.page.notBefore(state.Stream, last[0]), true
	}
	return err
}

// failingContainer describes a container; ok is false if it has not crashed, and can start.
func failingContainer(s corev1.ContainerStatus) (out api.FailingContainer, ok bool) {
	out = api.FailingContainer{Name: s.Name, State: "waiting", Restarts: s.RestartCount}
	ok = change.CannotStart(s)
	switch w := s.State.Waiting; {
	case s.State.Running != nil:
		out.State = "running"
	case s.State.Terminated != nil:
		out.State = "terminated"
	case w != nil:
		out.Waiting, out.Reason, out.Message = w.Reason, w.Reason, w.Message
	}
	if end := change.LastEnd(s); end != nil {
		if s.State.Terminated != nil {
			end = s.State.Terminated // after the crash it ended otherwise
		}
		out.Reason, out.Message, ok = end.Reason, end.Message, true
		out.ExitCode, out.Signal, out.FinishedAt = &end.ExitCode, end.Signal, end.FinishedAt.UTC()
	}
	return out, ok
}

// failingSince returns since when a Pod that fails in a state has failed, see
// [change.StillFailing]; notBefore is the begin of the gap that ends then, zero if there is
// none. A Pod does not recover in a gap.
// known is false if it failed before: it did so when the record begins, or in more versions
// than the budget, from which those that were read are taken.
func (c *call) failingSince(state past.State, key kube.Key, uid string, budget *int) (since, notBefore time.Time, known bool, err error) {
	ctx, st := c.r.Context(), state.Stream
	since = state.Since
	end := state.At // of the version that is looked at
	from, gaps := st.Span().From, &page{}
	for e, err := range versionsBackward(ctx, st, key, from.RV, state.RV) {
		if err != nil {
			return since, notBefore, false, err
		}
		fails, err := failsUntil(e, uid, end)
		if err != nil || !fails {
			return since.UTC(), notBefore, true, err
		}
		since, end, notBefore = e.At, e.At, gaps.notBefore(st, e)
		if !notBefore.IsZero() {
			end = notBefore
		}
		if e.Type == kube.Added {
			return since.UTC(), notBefore, true, nil
		}
		if *budget--; *budget <= 0 {
			return since.UTC(), notBefore, false, nil
		}
	}
	o, err := st.Get(ctx, from.RV, key)
	if err != nil || o == nil {
		return since.UTC(), notBefore, false, err
	}
	fails, err := failsUntil(history.Event{Type: kube.Modified, Object: o, At: from.At}, uid, end)
	if fails {
		since, notBefore = from.At, time.Time{}
	}
	return since.UTC(), notBefore, !fails, err
}

// failsUntil reports whether a version of a Pod fails until a time, at which it fails again.
func failsUntil(e history.Event, uid string, end time.Time) (bool, error) {
	if e.Type == kube.Deleted || e.Object.UID != uid {
		return false, nil
	}
	pod, err := podOf(e.Object, e.At)
	return err == nil && change.StillFailing(pod, end), err
}

// observed returns when the version of an object that is the newest at an RV was observed, or
// the begin of the record if it is older.
func observed(ctx context.Context, st *history.Stream, key kube.Key, rv uint64) (time.Time, error) {
	from := st.Span().From
	last, err := st.LastVersions(ctx, key, from.RV, rv, 1)
	if err != nil || len(last) == 0 {
		return from.At, err
	}
	return last[0].At, nil
}

// podOf decodes a version of a Pod that was observed at a time.
func podOf(o *scan.Object, seen time.Time) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(o.JSON), pod); err != nil {
		return nil, fmt.Errorf("%s at %d: %w", o.Key, o.RV, err)
	}
	change.Align(pod, seen)
	return pod, nil
}
