// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A FaultClass is a kind of faults. Those of one class that follow each other are one failure of a
// Pod.
type FaultClass string

// Classes of faults.
const (
	Crashed       FaultClass = "crash"    // a container ended with an error
	NoStart       FaultClass = "start"    // a container waits for another reason than that it is about to start
	Unschedulable FaultClass = "schedule" // the scheduler finds no Node
	PodFailed     FaultClass = "phase"    // the phase is Failed
	NotReady      FaultClass = "ready"    // the containers run, and the Pod is not ready
)

// A Fault is what the status of a Pod says about why it does not work.
type Fault struct {
	Class FaultClass
	// Reason is a word, as kubectl shows it: CrashLoopBackOff, OOMKilled.
	Reason string
	// Detail is what else is known: the exit code, a message.
	Detail string
	Weight int // of two faults of a class, the one that says more is shown

	Field, Text string // which field says so, and all that it says
}

// Words describes a fault in a title.
func (f Fault) Words() string {
	if f.Detail == "" {
		return f.Reason
	}
	return fmt.Sprintf("%s (%s)", f.Reason, Brief(f.Detail))
}

// FaultOf returns what is wrong with a Pod, nil if that is not known to be anything. A container that
// runs after a crash is not wrong if it recovers.
func FaultOf(pod *corev1.Pod, recovers func(corev1.ContainerStatus) bool) *Fault {
	s := pod.Status
	if s.Phase == corev1.PodFailed && (s.Reason != "" || len(Containers(pod)) == 0) {
		reason := cmp.Or(s.Reason, "Failed")
		return &Fault{Class: PodFailed, Reason: reason, Detail: Because(s.Message), Weight: 3, Field: "status.reason", Text: Because(reason, s.Message)}
	}
	if pod.DeletionTimestamp != nil || s.Phase == corev1.PodSucceeded {
		return nil
	}
	var worst *Fault
	container := ""
	for n, c := range Containers(pod) {
		field := "status.containerStatuses[" + c.Name + "]"
		if n >= len(s.ContainerStatuses) {
			field = "status.initContainerStatuses[" + c.Name + "]"
		}
		if f := containerFault(c, field); f != nil && (worst == nil || f.Weight > worst.Weight) && (f.Class != Crashed || !recovers(c)) {
			worst, container = f, c.Name
		}
	}
	if worst != nil {
		if limit := MemoryLimit(pod, container); worst.Reason == "OOMKilled" && limit != "" {
			worst.Detail += ", memory limit " + limit
			worst.Text += ", spec.containers[" + container + "].resources.limits.memory: " + limit
		}
		return worst
	}
	for _, c := range s.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &Fault{Class: Unschedulable, Reason: c.Reason, Detail: Because(c.Message), Weight: 1, Field: "status.conditions[PodScheduled]", Text: Because(c.Reason, c.Message)}
		}
	}
	return nil
}

// containerFault returns what is wrong with a container, whose status is a field.
func containerFault(c corev1.ContainerStatus, field string) *Fault {
	if end := LastEnd(c); end != nil {
		f := &Fault{Class: Crashed, Weight: 5, Field: field + ".lastState.terminated"}
		if c.State.Terminated == end {
			f.Field = field + ".state.terminated"
		}
		said := fmt.Sprintf("exit %d", end.ExitCode)
		if end.Signal != 0 {
			said = fmt.Sprintf("signal %d", end.Signal)
		}
		switch w := c.State.Waiting; {
		case end.Reason == "OOMKilled":
			f.Reason, f.Weight = "OOMKilled", 7
		case w != nil && w.Reason == "CrashLoopBackOff":
			f.Reason, f.Weight = "CrashLoopBackOff", 6
		default:
			f.Reason = cmp.Or(end.Reason, "Error")
		}
		f.Detail = Because(said, LastLine(end.Message))
		if f.Detail == said && end.Reason != "" && end.Reason != f.Reason && end.Reason != "Error" {
			f.Detail += ", " + end.Reason
		}
		f.Text = Because(end.Reason, said, LastLine(end.Message))
		return f
	}
	if w := c.State.Waiting; CannotStart(c) {
		f := &Fault{Class: NoStart, Reason: w.Reason, Detail: Because(w.Message), Weight: 4, Field: field + ".state.waiting", Text: Because(w.Reason, w.Message)}
		if w.Reason == "ImagePullBackOff" {
			f.Weight = 5
		}
		if strings.HasPrefix(f.Detail, "rpc error") || len(f.Detail) > len(w.Reason)+len(c.Image)+40 && f.Weight == 4 {
			f.Weight = 6 // the error itself says more than that it is tried again later
		}
		return f
	}
	return nil
}

// startEvents are the reasons of Warning Events that say why a Pod does not start, and the classes of
// these faults: the status of a container says the same as some of them a moment later.
var startEvents = map[string]FaultClass{
	"FailedMount": NotReady, "FailedAttachVolume": NotReady, "FailedMapVolume": NotReady, "FailedCreatePodSandBox": NotReady,
	"FailedCreatePodContainer": NotReady, "NetworkNotReady": NotReady, "FailedPostStartHook": NotReady,
	"Failed": NoStart, "InspectFailed": NoStart, "ErrImageNeverPull": NoStart,
}

// EventFault returns what a Warning Event says is wrong with a Pod that is not ready, and has been or
// not; nil if it is about something else. A startup or readiness probe may fail while a container
// starts.
func EventFault(e *Event, pod *corev1.Pod, ready bool) *Fault {
	f := &Fault{Class: NotReady, Reason: e.Reason, Detail: e.Text(), Weight: 3}
	switch class, starts := startEvents[e.Reason]; {
	case e.Type != corev1.EventTypeWarning:
		return nil
	case starts:
		f.Class = class
	case e.Reason == "Unhealthy" && ready:
		f.Reason = "not ready"
	case e.Reason == "Unhealthy" && pod.Status.Phase == corev1.PodRunning:
		f.Reason, f.Weight = "not ready", 2
	default:
		return nil
	}
	return f
}

// LastOutput returns the last line of the container of a Pod that ended last, as its status has it
// (the termination message), and when it ended.
func LastOutput(pod *corev1.Pod) (line string, ended time.Time) {
	for _, c := range Containers(pod) {
		if end := LastEnd(c); end != nil && !end.FinishedAt.Time.Before(ended) {
			line, ended = LastLine(end.Message), end.FinishedAt.Time
		}
	}
	return line, ended
}

// Restarts counts the restarts of a Pod's containers.
func Restarts(p *corev1.Pod) (n int32) {
	for _, c := range p.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// Ended reports whether all containers of a Pod have ended for good.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
