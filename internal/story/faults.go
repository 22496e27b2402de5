// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/change"
	"github.com/watchkeeper/watchkeeper/internal/words"
)

// Classes of faults. Faults of one class are one failure of a Pod.
const (
	crashed       = "crash"    // a container ended with an error
	cannotStart   = "start"    // a container waits for another reason than that it is about to start, or an Event says so first
	unschedulable = "schedule" // the scheduler finds no Node
	podFailed     = "phase"    // the phase is Failed
	notReady      = "ready"    // the Pod was ready, or an Event says why it is not
)

// A fault is what a state of a Pod says about why it does not work.
type fault struct {
	class string
	// reason is a word, as kubectl shows it: CrashLoopBackOff, OOMKilled.
	reason string
	// detail is what else is known: the exit code, a message.
	detail string
	cause  api.Cause
	weight int // of two faults of a class, the one that says more is shown

	container string
}

// text describes a fault in a title.
func (f fault) text() string {
	if f.detail == "" {
		return f.reason
	}
	return fmt.Sprintf("%s (%s)", f.reason, change.Brief(f.detail))
}

// faultOf returns what is wrong with a Pod in its i-th state, nil if that is not known to be
// anything.
func (t *teller) faultOf(th *thing, i int) *fault {
	s := th.states[i]
	pod := s.asPod()
	if pod.Status.Phase == corev1.PodFailed && (pod.Status.Reason != "" || len(change.Containers(pod)) == 0) {
		reason := cmp.Or(pod.Status.Reason, "Failed")
		return &fault{class: podFailed, reason: reason, detail: change.Because(pod.Status.Message), weight: 3, cause: s.cause("status.reason", change.Because(reason, pod.Status.Message))}
	}
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	var worst *fault
	for n, c := range change.Containers(pod) {
		field := "status.containerStatuses[" + c.Name + "]"
		if n >= len(pod.Status.ContainerStatuses) {
			field = "status.initContainerStatuses[" + c.Name + "]"
		}
		if f := containerFault(c, field, s.cause); f != nil && (worst == nil || f.weight > worst.weight) {
			if f.class == crashed && t.recovers(th, i, c) {
				continue
			}
			worst = f
			worst.container = c.Name
		}
	}
	if worst != nil {
		if limit := change.MemoryLimit(pod, worst.container); worst.reason == "OOMKilled" && limit != "" {
			worst.detail += ", memory limit " + limit
			worst.cause.Text += ", spec.containers[" + worst.container + "].resources.limits.memory: " + limit
		}
		return worst
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &fault{class: unschedulable, reason: c.Reason, detail: change.Because(c.Message), weight: 1, cause: s.cause("status.conditions[PodScheduled]", change.Because(c.Reason, c.Message))}
		}
	}
	return nil
}

// recovers reports whether a container runs in the i-th state of a Pod until the Pod has
// recovered from its crash.
func (t *teller) recovers(th *thing, i int, c corev1.ContainerStatus) bool {
	run := c.State.Running
	if run == nil {
		return false
	}
	for ; i+1 < len(th.states); i++ {
		next := th.states[i+1]
		if next.terminating() {
			return !change.Failing(th.states[i].asPod(), next.at)
		}
		all := change.Containers(next.asPod())
		n := slices.IndexFunc(all, func(later corev1.ContainerStatus) bool { return later.Name == c.Name })
		if n >= 0 && all[n].State.Running != nil && all[n].State.Running.StartedAt.Equal(&run.StartedAt) {
			continue
		}
		end, failing := next.at, change.Failing
		if n >= 0 && change.LastEnd(all[n]) != nil {
			failing = change.StillFailing
		}
		if e := next.entry; e != nil && !e.NotBefore.IsZero() {
			end = e.NotBefore // nothing recovers in a gap
		}
		return !failing(th.states[i].asPod(), end)
	}
	return !change.Failing(th.states[i].asPod(), t.until(th, i))
}

// containerFault returns what is wrong with a container.
func containerFault(c corev1.ContainerStatus, field string, cause func(field, text string) api.Cause) *fault {
	if end := change.LastEnd(c); end != nil {
		f := &fault{class: crashed, weight: 4}
		at := field + ".lastState.terminated"
		if c.State.Terminated == end {
			at = field + ".state.terminated"
		}
		said := fmt.Sprintf("exit %d", end.ExitCode)
		if end.Signal != 0 {
			said = fmt.Sprintf("signal %d", end.Signal)
		}
		switch w := c.State.Waiting; {
		case end.Reason == "OOMKilled":
			f.reason, f.weight = "OOMKilled", 7
		case w != nil && w.Reason == "CrashLoopBackOff":
			f.reason, f.weight = "CrashLoopBackOff", 6
		default:
			f.reason = cmp.Or(end.Reason, "Error")
			f.weight = 5
		}
		f.detail = change.Because(said, change.LastLine(end.Message))
		if f.detail == said && end.Reason != "" && end.Reason != f.reason && end.Reason != "Error" {
			f.detail += ", " + end.Reason
		}
		f.cause = cause(at, change.Because(end.Reason, said, change.LastLine(end.Message)))
		return f
	}
	if w := c.State.Waiting; change.CannotStart(c) {
		f := &fault{class: cannotStart, reason: w.Reason, detail: change.Because(w.Message), weight: 4, cause: cause(field+".state.waiting", change.Because(w.Reason, w.Message))}
		if w.Reason == "ImagePullBackOff" {
			f.weight = 5
		}
		if strings.HasPrefix(f.detail, "rpc error") || len(f.detail) > len(w.Reason)+len(c.Image)+40 && f.weight == 4 {
			f.weight = 6 // the error itself says more than that it is tried again later
		}
		return f
	}
	return nil
}

// lastLog returns the last output of the container that ended last, as the status of a Pod
// has it (its termination message), and when it ended.
func lastLog(s *state) (text string, ended time.Time) {
	if s.o.Kind != "Pod" {
		return "", ended
	}
	for _, c := range change.Containers(s.asPod()) {
		if end := change.LastEnd(c); end != nil && !end.FinishedAt.Time.Before(ended) {
			text, ended = words.Clip(change.LastLine(end.Message), maxMessage), end.FinishedAt.Time
		}
	}
	return text, ended
}

// maxCauses limits the causes of an episode.
const maxCauses = 5

// A said is a cause, with the names of all objects that say the same.
type said struct {
	api.Cause
	names []string
}

// addCause adds a cause. If other objects say the same, they are counted.
func addCause(all []said, c api.Cause) []said {
	if c.Text == "" {
		return all // it says nothing
	}
	field := func(c api.Cause) string { return strings.Replace(c.Field, ".lastState.", ".state.", 1) }
	for i := range all {
		was := all[i].Cause
		same := was.Text == c.Text || words.Masked(was.Text, func(w string) bool { return words.IsName(w, was.Name) }) == words.Masked(c.Text, func(w string) bool { return words.IsName(w, c.Name) })
		if same && field(was) == field(c) && was.Kind == c.Kind {
			all[i].names = words.AppendOnce(all[i].names, c.Namespace+"/"+c.Name)
			if n := len(all[i].names); n > 1 {
				all[i].Objects = n
			}
			return all
		}
	}
	if len(all) < maxCauses {
		all = append(all, said{c, []string{c.Namespace + "/" + c.Name}})
	}
	return all
}

// since returns what a field says of what was so before the story: no entry does.
func (s *state) since(field, text string) []said {
	if !s.initial {
		return nil
	}
	return addCause(nil, s.cause(field, text))
}

func isReady(s *state) bool {
	c, ok := s.condition(string(corev1.PodReady))
	return ok && c.Status == "True"
}

// startEvents are the reasons of Warning Events that say why a Pod does not start.
var startEvents = []string{"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox", "FailedCreatePodContainer", "NetworkNotReady", "Failed", "FailedPostStartHook", "InspectFailed", "ErrImageNeverPull"}

// minUnready is after which time a Pod that runs and has not become ready is told, if that is
// so at the begin or the end of the story: 'diagnose' has the same.
const minUnready = time.Minute

// unreadyUntil returns until when a Pod is not ready that is not ready in a state.
func (t *teller) unreadyUntil(pod *thing, i int) time.Time {
	for i+1 < len(pod.states) && !isReady(pod.states[i+1]) && !pod.states[i+1].terminating() {
		i++
	}
	return t.until(pod, i)
}

// notReady returns the fault of a Pod that is not ready, and neither starts nor ends: an Event
// about it says why, or it has been ready, or it does not become so. A lost Node explains it as
// long as it is lost.
func (t *teller) notReady(pod *thing, i int, ready bool) *fault {
	s, until := pod.states[i], t.until(pod, i)
	p := s.asPod()
	if s.terminating() || isReady(s) || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.Spec.NodeName == "" {
		return nil
	}
	end := t.unreadyUntil(pod, i)
	if node := p.Spec.NodeName; t.nodeDown(node, s.at.Add(-5*time.Second), s.at.Add(5*time.Second)) && t.nodeDown(node, end.Add(-maxTrail), end) {
		return nil
	}
	var found *event
	for _, ev := range t.eventsAbout(pod, s.at.Add(-30*time.Second), until) {
		probe := ev.Reason == "Unhealthy" && (p.Status.Phase == corev1.PodRunning || ready)
		if ev.warns() && (probe || slices.Contains(startEvents, ev.Reason)) {
			found = ev
		}
	}
	if found != nil {
		class, reason, weight := notReady, found.Reason, 3
		switch reason {
		case "Unhealthy":
			if reason = "not ready"; !ready { // a startup or readiness probe may fail while a container starts
				weight = 2
			}
		case "Failed", "InspectFailed", "ErrImageNeverPull": // the container's status says the same a moment later
			class = cannotStart
		}
		return &fault{class: class, reason: reason, detail: found.Text(), cause: found.cause(), weight: weight}
	}
	c, ok := s.condition(string(corev1.PodReady))
	since := s.at
	if at := c.LastTransitionTime.Time; !at.IsZero() && at.Before(since) {
		since = at
	}
	if !ok || p.Status.Phase != corev1.PodRunning || !ready && (!s.initial && !end.Equal(t.To) || end.Sub(since) < minUnready) {
		return nil
	}
	return &fault{class: notReady, reason: "not ready", detail: c.Says(), weight: 1, cause: s.because(c)}
}
