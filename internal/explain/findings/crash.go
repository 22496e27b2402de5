// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// A trouble is why a Pod fails, by the container that says most.
type trouble struct {
	rule   string
	reason string // as kubectl shows it: CrashLoopBackOff, Init:ImagePullBackOff
	end    *corev1.ContainerStateTerminated
	says   []string
	since  time.Time
}

// order of reasons, as in the page's "Needs attention" (ui/src/app/attention.ts).
var order = map[string]int{"OOMKilled": 0, "CrashLoopBackOff": 1, "Error": 2, "Init:CrashLoopBackOff": 2, "Init:Error": 2, "ImagePullBackOff": 4, "ErrImagePull": 4}

func rankOf(reason string) int {
	if n, ok := order[reason]; ok {
		return n
	}
	return 3
}

// trouble returns why a Pod fails; nil if it does not, or if it is in the phase Failed.
func (s *State) trouble(pod *corev1.Pod) (worst *trouble) {
	if pod.Status.Phase == corev1.PodFailed || !change.Failing(pod, s.at("pods")) {
		return nil
	}
	for i, c := range change.Containers(pod) {
		t := containerTrouble(c)
		if t == nil {
			continue
		}
		if i >= len(pod.Status.ContainerStatuses) {
			t.reason = "Init:" + t.reason
		}
		if worst == nil || rankOf(t.reason) < rankOf(worst.reason) {
			worst = t
		}
	}
	return worst
}

func containerTrouble(c corev1.ContainerStatus) *trouble {
	w := c.State.Waiting
	if end := change.LastEnd(c); end != nil {
		t := &trouble{rule: "crash", end: end, since: end.FinishedAt.Time, says: []string{end.Message}}
		switch {
		case w != nil && w.Reason != "":
			t.reason = w.Reason
		case c.State.Terminated != nil:
			t.reason = cmp.Or(end.Reason, "Error")
		default:
			t.reason = "Running after a crash"
		}
		return t
	}
	if change.CannotStart(c) {
		t := &trouble{rule: "start", reason: w.Reason, says: []string{w.Message}}
		if change.NoImage(w.Reason) {
			t.rule = "image"
		}
		return t
	}
	return nil
}

// troubled adds the Pods that fail for one of the rules, grouped by workload, with the words
// of the page.
func (s *State) troubled(g *group, rule string, says func(*corev1.Pod, *Finding)) {
	reasons, ends := map[*Finding]string{}, map[*Finding]*corev1.ContainerStateTerminated{}
	for _, pod := range s.sortedPods() {
		t := s.trouble(pod)
		if t == nil || t.rule != rule {
			continue
		}
		key := t.reason
		if rule != "start" { // the reasons of the others change with each try
			key = ""
		}
		f := g.of(s.podWorkload(pod), key, api.SeverityCritical)
		f.Objects = append(f.Objects, podRef(pod))
		f.from(cmp.Or(t.since, pod.CreationTimestamp.Time))
		f.say(t.says...)
		says(pod, f)
		if reason, ok := reasons[f]; !ok || rankOf(t.reason) < rankOf(reason) {
			reasons[f] = t.reason
		}
		if end := ends[f]; t.end != nil && (end == nil || rankOf(t.end.Reason) < rankOf(end.Reason)) {
			ends[f] = t.end
		}
		f.refine = func(f *Finding) {
			f.Title = words.Count(len(f.Objects), "Pod") + " " + reasons[f]
			if end := ends[f]; end != nil {
				f.Title += " · " + besideReason(endWords(end), reasons[f])
			}
		}
	}
}

// crashes finds Pods whose containers crash.
func (s *State) crashes(g *group) {
	s.troubled(g, "crash", func(pod *corev1.Pod, f *Finding) {
		f.say(s.failedProbe(pod, "Liveness", "Startup").says()) // for which the kubelet ends it
	})
}

// images finds Pods whose image cannot be pulled.
func (s *State) images(g *group) {
	s.troubled(g, "image", func(pod *corev1.Pod, f *Finding) {
		if e := s.warningAbout(pod, "BackOff"); e != nil && strings.Contains(e.message, "pull") { // others repeat the reason
			f.say(e.says())
		}
	})
}

// starts finds Pods whose containers cannot be started for another reason, such as
// CreateContainerConfigError.
func (s *State) starts(g *group) {
	s.troubled(g, "start", func(pod *corev1.Pod, f *Finding) {
		if len(f.said) == 0 {
			f.say(s.warningAbout(pod, "BackOff").says())
		}
	})
}

// creating finds Pods that have been on a Node for a while and do not run, without an error in
// their status, as without a volume.
func (s *State) creating(g *group) {
	for _, pod := range s.sortedPods() {
		if pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || s.lost(pod) || change.Failing(pod, s.at("pods")) {
			continue
		}
		since := cmp.Or(conditionTime(pod, corev1.PodScheduled), pod.CreationTimestamp.Time)
		if s.at("pods").Sub(since) < minAge {
			continue
		}
		workload := s.podWorkload(pod)
		f := g.of(workload, "", s.severity(workload))
		f.Objects = append(f.Objects, podRef(pod))
		f.from(since)
		f.say(s.warning(string(pod.UID), "BackOff", "FailedScheduling").says())
		f.refine = func(f *Finding) { f.Title = words.Count(len(f.Objects), "Pod") + " ContainerCreating" }
	}
}

// warningAbout returns the latest Warning about a Pod, not one of a reason.
func (s *State) warningAbout(pod *corev1.Pod, except string) *event {
	return s.warning(string(pod.UID), except, "FailedScheduling")
}

// endWords describes how a container ended: "Error, exit code 1".
func endWords(end *corev1.ContainerStateTerminated) string {
	words := fmt.Sprintf("exit code %d", end.ExitCode)
	if end.Signal != 0 {
		words = fmt.Sprintf("signal %d", end.Signal)
	}
	if end.Reason != "" {
		words = end.Reason + ", " + words
	}
	return words
}

// besideReason leaves out the reason that is shown next to the words.
func besideReason(words, reason string) string { return strings.TrimPrefix(words, reason+", ") }

// conditionTime returns since when a condition has its status.
func conditionTime(pod *corev1.Pod, typ corev1.PodConditionType) time.Time {
	if c := condition(pod, typ); c != nil {
		return transition(pod, c.LastTransitionTime)
	}
	return time.Time{}
}

// condition returns a condition of a Pod, nil if it has none of the type.
func condition(pod *corev1.Pod, typ corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == typ {
			return c
		}
	}
	return nil
}

// sortedPods returns the Pods in the order of their keys.
func (s *State) sortedPods() []*corev1.Pod {
	slices.SortFunc(s.pods, func(a, b *corev1.Pod) int { return compareRefs(podRef(a), podRef(b)) })
	return s.pods
}
