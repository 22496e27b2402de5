// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// A fault is what a state of a Pod, or an Event about it, says about why it does not work.
type fault struct {
	change.Fault
	cause api.Cause
}

// faultOf returns what is wrong with a Pod in its i-th state, nil if that is not known to be anything.
func (t *teller) faultOf(th *thing, i int) *fault {
	s := th.states[i]
	f := change.FaultOf(s.asPod(), func(c corev1.ContainerStatus) bool { return t.recovers(th, i, c) })
	if f == nil {
		return nil
	}
	return &fault{*f, s.cause(f.Field, f.Text)}
}

// recovers reports whether a container runs in the i-th state of a Pod until the Pod has recovered from its crash.
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

// lastLog returns the last output of the container that ended last, as the status of a Pod
// has it (its termination message), and when it ended.
func lastLog(s *state) (text string, ended time.Time) {
	if s.o.Kind != "Pod" {
		return "", ended
	}
	text, ended = change.LastOutput(s.asPod())
	return words.Clip(text, maxMessage), ended
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

// minUnready is after which time a Pod that runs and has not become ready is told, if that is
// so at the begin or the end of the story, or until it is deleted: 'diagnose' has the same.
const minUnready = time.Minute

// notReady returns the fault of a Pod that is not ready, and neither starts nor ends: an Event about it says why, or
// it has been ready, or it does not become so until it is deleted. A lost Node explains it as long as it is lost.
func (t *teller) notReady(pod *thing, i int, ready bool) *fault {
	s, until := pod.states[i], t.until(pod, i)
	p := s.asPod()
	if s.terminating() || isReady(s) || change.Ended(s.asPod()) || p.Spec.NodeName == "" {
		return nil
	}
	passes := false // it becomes ready, or fails otherwise
	for i+1 < len(pod.states) && !isReady(pod.states[i+1]) && !pod.states[i+1].terminating() {
		i++
		passes = passes || t.faultOf(pod, i) != nil
	}
	passes = passes || i+1 < len(pod.states) && !pod.states[i+1].terminating()
	end := t.until(pod, i)
	if node := p.Spec.NodeName; t.nodeDown(node, s.at.Add(-5*time.Second), s.at.Add(5*time.Second)) && t.nodeDown(node, end.Add(-maxTrail), end) {
		return nil
	}
	var found *fault
	for _, ev := range t.eventsAbout(pod, s.at.Add(-30*time.Second), until) {
		if f := change.EventFault(&ev.Event, p, ready); f != nil {
			found = &fault{*f, ev.cause()}
		}
	}
	if found != nil {
		return found
	}
	c, ok := s.condition(string(corev1.PodReady))
	since := s.at
	if at := c.LastTransitionTime.Time; !at.IsZero() && at.Before(since) {
		since = at
	}
	if !ok || p.Status.Phase != corev1.PodRunning || !ready && (!s.initial && passes && !end.Equal(t.To) || end.Sub(since) < minUnready) {
		return nil
	}
	return &fault{change.Fault{Class: change.NotReady, Reason: "not ready", Detail: c.Says(), Weight: 1}, s.because(c)}
}
