// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// counters are numbers of replicas, and of Jobs' Pods, in a status. Missing
// means 0.
var counters = []struct{ member, name string }{
	{"replicas", "current replicas"},
	{"readyReplicas", "ready replicas"},
	{"availableReplicas", "available replicas"},
	{"updatedReplicas", "updated replicas"},
	{"unavailableReplicas", "unavailable replicas"},
	{"fullyLabeledReplicas", ""},
	{"currentReplicas", "replicas of the current revision"},
	{"terminatingReplicas", "terminating replicas"},
	{"desiredReplicas", "desired replicas"},
	{"currentNumberScheduled", "scheduled Pods"},
	{"desiredNumberScheduled", "desired Pods"},
	{"updatedNumberScheduled", "updated Pods"},
	{"numberReady", "ready Pods"},
	{"numberAvailable", "available Pods"},
	{"numberUnavailable", "unavailable Pods"},
	{"active", "active Pods"},
	{"ready", "ready Pods"},
	{"succeeded", "succeeded Pods"},
	{"failed", "failed Pods"},
	{"terminating", "terminating Pods"},
}

// scale describes replicas.
func (s *summary) scale() {
	if old, now, ok := s.changed("spec", "replicas"); ok {
		s.say("replicas %s → %s", orNone(old), orNone(now))
	}
	if old, now, ok := s.changed("spec", "paused"); ok {
		if now == "true" {
			s.say("rollout paused")
		} else if old == "true" {
			s.say("rollout resumed")
		}
	}
}

// counters describes how many replicas and Pods there are in each state.
func (s *summary) counters() {
	for _, c := range counters {
		old, now := at(s.before, "status", c.member), at(s.after, "status", c.member)
		if !isScalar(old) || !isScalar(now) {
			continue // a CronJob's active is a list
		}
		s.describe("status", c.member)
		name := c.name
		if c.member == "currentReplicas" && text(s.after["kind"]) == "HorizontalPodAutoscaler" {
			name = "replicas of the target"
		}
		if a, b := orZero(text(old)), orZero(text(now)); a != b && name != "" {
			s.say("%s %s → %s", name, a, b)
			s.counted++
		}
	}
}

// service leaves out a Service's list of addresses if it only repeats the address.
func (s *summary) service() {
	if text(s.after["kind"]) == "Service" && len(elements(s.before, "spec", "clusterIPs")) <= 1 && len(elements(s.after, "spec", "clusterIPs")) <= 1 {
		s.describe("spec", "clusterIPs")
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

// templates are the paths of Pod templates by kind.
var templates = [][]string{{"spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}}

// podTemplate describes containers and their images.
func (s *summary) podTemplate() {
	for _, path := range templates {
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			s.containers(path, list)
		}
	}
	restarted := []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}
	if _, now, ok := s.changed(restarted...); ok && now != "" {
		s.say("restart asked for")
	}
}

func (s *summary) containers(path []string, list string) {
	path = append(append([]string{}, path...), list)
	before, after := elements(s.before, path...), elements(s.after, path...)
	matched, ok := pairs(before, after)
	if !ok {
		return
	}
	s.describe(path...)
	kind := map[string]string{"containers": "container ", "initContainers": "init container ", "ephemeralContainers": "debug container "}[list]
	for _, p := range matched {
		old, _ := p.before.(map[string]any)
		now, _ := p.after.(map[string]any)
		switch {
		case old == nil:
			s.say("%s%s added (%s)", kind, p.key, text(now["image"]))
			continue
		case now == nil:
			s.say("%s%s removed", kind, p.key)
			continue
		}
		if a, b := text(old["image"]), text(now["image"]); a != b {
			who := ""
			if len(before) > 1 || len(after) > 1 || list != "containers" {
				who = kind + p.key + ": "
			}
			s.say("%simage %s → %s", who, a, ShortImage(a, b))
		}
		for _, l := range leaves(nil, nil, old, now, func(p []string) bool { return len(p) == 1 && p[0] == "image" }) {
			if isScalar(l.before) && isScalar(l.after) {
				s.say("%s%s: %s %s", kind, p.key, l, l.arrow())
			} else {
				s.say("%s%s: %s %s", kind, p.key, l, l.verb())
			}
		}
	}
}

// ShortImage returns the later of two images; only its tag or digest if the name is the
// same.
func ShortImage(before, after string) string {
	name := func(image string) int {
		if i := strings.IndexByte(image, '@'); i >= 0 {
			return i
		}
		if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
			return i
		}
		return len(image)
	}
	if a, b := name(before), name(after); before[:a] == after[:b] && b < len(after) && a < len(before) && !strings.ContainsFunc(after, unicode.IsSpace) { // a mistake is shown as a whole
		return after[b+1:]
	}
	return after
}

// Restarted reports whether a template differs from another as 'kubectl rollout restart' makes it.
func Restarted(before, after *corev1.PodTemplateSpec) bool {
	const at = "kubectl.kubernetes.io/restartedAt"
	return before.Annotations[at] != after.Annotations[at]
}

// Images returns the images that changed between two templates: only the tag if it is one.
func Images(before, after *corev1.PodTemplateSpec) string {
	old := map[string]string{}
	if before != nil {
		for _, c := range slices.Concat(before.Spec.InitContainers, before.Spec.Containers) {
			old[c.Name] = c.Image
		}
	}
	var images []string
	for _, c := range slices.Concat(after.Spec.Containers, after.Spec.InitContainers) {
		if was, ok := old[c.Name]; was != c.Image {
			image := c.Image
			if ok {
				image = ShortImage(was, c.Image)
			}
			images = words.AppendOnce(images, image)
		}
	}
	return words.List(images, 3, "image")
}
