// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// node describes cordons and taints.
func (s *summary) node() {
	if text(s.after["kind"]) != "Node" {
		return
	}
	if _, now, ok := s.changed("spec", "unschedulable"); ok {
		if now == "true" {
			s.say("cordoned")
		} else {
			s.say("uncordoned")
		}
	}
	seen := map[string]bool{}
	for _, l := range s.differ("spec", "taints") {
		if len(l.path) < 3 || seen[l.path[2]] {
			continue
		}
		seen[l.path[2]] = true
		name := strings.Trim(l.path[2], "[]")
		if len(l.path) > 3 {
			s.say("taint %s changed", name)
		} else {
			s.say("taint %s %s", name, l.verb())
		}
	}
}

// pod describes phase, node and containers.
func (s *summary) pod() {
	if old, now, ok := s.changed("status", "phase"); ok {
		s.say("%s → %s", orNone(old), orNone(now))
	}
	if text(s.after["kind"]) != "Pod" {
		return
	}
	if _, now, ok := s.changed("spec", "nodeName"); ok {
		s.say("scheduled to %s", now)
	}
	if old, now, ok := s.changed("status", "reason"); ok && now != "" {
		s.say("reason %s", now)
	} else if ok {
		s.say("reason %s gone", old)
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		s.containerStatuses(list)
	}
	if old, now, ok := s.changed("status", "podIP"); ok {
		s.minor = append(s.minor, fmt.Sprintf("IP %s → %s", orNone(old), orNone(now)))
	}
	for _, name := range []string{"podIPs", "hostIP", "hostIPs", "startTime", "qosClass"} {
		for range s.differ("status", name) {
			s.minor = append(s.minor, "status."+name+" changed")
			break
		}
	}
}

// containerStatuses describes state changes of containers.
func (s *summary) containerStatuses(list string) {
	matched, ok := pairs(elements(s.before, "status", list), elements(s.after, "status", list))
	if !ok {
		return
	}
	s.describe("status", list)
	for _, p := range matched {
		old, _ := p.before.(map[string]any)
		now, _ := p.after.(map[string]any)
		if now == nil {
			continue
		}
		name := "container " + p.key
		if list == "initContainerStatuses" {
			name = "init " + name
		}
		said := len(s.phrases)
		restarted := orZero(text(old["restartCount"])) != orZero(text(now["restartCount"]))
		if restarted {
			s.say("%s restarted%s", name, parenthesis(outcome(members(now, "lastState", "terminated"))))
		}
		if a, b := stateOf(old), stateOf(now); a != b && b != "" && !(restarted && b == "running") {
			s.say("%s %s", name, b)
		}
		if a, b := text(old["ready"]), text(now["ready"]); a != b && len(s.phrases) == said && (a == "true" || b == "true") {
			s.say("%s %s", name, map[bool]string{true: "ready", false: "not ready"}[b == "true"])
		}
		if len(s.phrases) == said {
			for _, l := range leaves(nil, nil, old, now, nil) {
				s.minor = append(s.minor, fmt.Sprintf("%s: %s %s", name, l, l.verb()))
			}
		}
	}
}

// stateOf describes the state of a container.
func stateOf(status map[string]any) string {
	switch {
	case at(status, "state", "running") != nil:
		return "running"
	case at(status, "state", "waiting") != nil:
		return "waiting" + parenthesis(text(at(status, "state", "waiting", "reason")))
	case at(status, "state", "terminated") != nil:
		return "terminated" + parenthesis(outcome(members(status, "state", "terminated")))
	}
	return ""
}

// outcome describes how a container ended.
func outcome(terminated map[string]any) string {
	reason, code := text(terminated["reason"]), text(terminated["exitCode"])
	if code == "" || code == "0" && reason != "" && reason != "Error" { // Completed says so
		return reason
	}
	return strings.TrimPrefix(reason+", exit code "+code, ", ")
}

func parenthesis(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// conditions describes conditions that changed.
func (s *summary) conditions() {
	matched, ok := pairs(elements(s.before, "status", "conditions"), elements(s.after, "status", "conditions"))
	if !ok {
		return
	}
	s.describe("status", "conditions")
	told := map[string]bool{}
	for _, p := range matched {
		old, _ := p.before.(map[string]any)
		now, _ := p.after.(map[string]any)
		reason, message := text(now["reason"]), clip(text(now["message"]), maxText)
		why := parenthesis(reason)
		if isBad(p.key, text(now["status"])) && reason != "" && message != "" && !told[message] {
			why += ": " + message // once: that of Ready is that of ContainersReady
		}
		switch a, b := text(old["status"]), text(now["status"]); {
		case now == nil:
			s.say("condition %s removed", p.key)
		case old == nil && (p.key == "Ready" || b == "True" || reason == corev1.PodReasonUnschedulable):
			s.say("%s%s", state(p.key, b), why)
			told[message] = true
		case old == nil:
			s.minor = append(s.minor, state(p.key, b)+why)
		case a != b:
			s.say("%s → %s%s", state(p.key, a), state(p.key, b), why)
			told[message] = true
		case text(old["reason"]) != reason:
			s.say("%s: %s → %s", p.key, orNone(text(old["reason"])), orNone(reason))
		case text(old["message"]) != text(now["message"]):
			s.say("%s: %s", p.key, message)
		default:
			for _, l := range leaves(nil, nil, old, now, nil) {
				s.minor = append(s.minor, fmt.Sprintf("%s: %s %s", p.key, l, l.verb()))
			}
		}
	}
}

// negative are the conditions of built-in kinds that are bad news if they are true.
var negative = map[string]bool{
	"DiskPressure": true, "MemoryPressure": true, "PIDPressure": true, "NetworkUnavailable": true, // of Nodes
	"DisruptionTarget": true, "ReplicaFailure": true, "Failed": true, "FailureTarget": true, "ScalingLimited": true,
	"NamespaceContentRemaining": true, "NamespaceFinalizersRemaining": true, "NamespaceDeletionContentFailure": true,
	"NamespaceDeletionDiscoveryFailure": true, "NamespaceDeletionGroupVersionParsingFailure": true,
}

// isBad reports whether the status of a condition is bad news, whose message is shown.
func isBad(condition, status string) bool {
	return status == "Unknown" || status == "True" && negative[condition] || status == "False" && !negative[condition]
}

// state describes a condition.
func state(condition, status string) string {
	switch {
	case status == "True":
		return condition
	case status == "False" && condition == "Ready":
		return "NotReady"
	case status == "False":
		return "not " + condition
	}
	return condition + " " + strings.ToLower(orNone(status))
}

// MemoryLimit returns the memory limit of a container, "" if it has none.
func MemoryLimit(pod *corev1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if limit, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && c.Name == container {
			return limit.String()
		}
	}
	return ""
}
