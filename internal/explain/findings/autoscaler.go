// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
)

// flapSpan is in which time a HorizontalPodAutoscaler flaps if it scales up and down minFlaps
// times each.
const (
	flapSpan = 10 * time.Minute
	minFlaps = 2
)

// autoscalersFound finds HorizontalPodAutoscalers that cannot scale, are at their maximum, or
// scale up and down again and again.
func (s *State) autoscalersFound(g *group) {
	for _, h := range s.autoscalers {
		subject := refOf("HorizontalPodAutoscaler", h.Namespace, h.Name)
		find := func(key, severity, title string) *Finding {
			f := g.of(subject, key, severity)
			f.Title, f.Objects = title, []Ref{subject}
			f.Related = []Ref{refOf(h.Spec.ScaleTargetRef.Kind, h.Namespace, h.Spec.ScaleTargetRef.Name)}
			return f
		}
		for _, c := range h.Status.Conditions {
			var f *Finding
			switch {
			case c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionFalse && c.Reason != "ScalingDisabled",
				c.Type == autoscalingv2.AbleToScale && c.Status == corev1.ConditionFalse:
				f = find(string(c.Type), api.SeverityWarning, "cannot scale")
			case c.Type == autoscalingv2.ScalingLimited && c.Status == corev1.ConditionTrue && c.Reason == "TooManyReplicas":
				f = find(string(c.Type), api.SeverityWarning, fmt.Sprintf("at its maximum of %s", words.Count(int(h.Spec.MaxReplicas), "replica")))
			default:
				continue
			}
			f.from(transition(h, c.LastTransitionTime))
			f.say(because(c.Reason, c.Message))
		}
		if up, down, turned, says := s.rescales(string(h.UID)); up >= minFlaps && down >= minFlaps {
			f := find("flaps", api.SeverityWarning, fmt.Sprintf("scaled up %s and down %s in %d minutes", times(up), times(down), int(flapSpan/time.Minute)))
			f.from(turned)
			f.say(says...)
		}
	}
}

// rescales counts how often Events say that an autoscaler has scaled up and down lately, and
// returns when it first turned round, and the Events.
func (s *State) rescales(uid string) (up, down int, turned time.Time, says []string) {
	s.sorted()
	if uid == "" {
		return 0, 0, turned, nil
	}
	begin := s.at("events").Add(-flapSpan)
	var firstUp, firstDown time.Time
	for _, e := range s.about[uid] {
		if e.reason != "SuccessfulRescale" || e.last.Before(begin) {
			continue
		}
		n, first := e.count, e.first
		if e.first.Before(begin) { // it is not known when the others were
			n, first = 1, e.last
		}
		earlier := func(t time.Time) time.Time {
			if t.IsZero() || first.Before(t) {
				return first
			}
			return t
		}
		switch {
		case strings.Contains(e.message, "below target"):
			down, firstDown = down+n, earlier(firstDown)
		case strings.Contains(e.message, "above target"):
			up, firstUp = up+n, earlier(firstUp)
		default:
			continue
		}
		says = append(says, e.says())
	}
	if turned = firstUp; firstDown.After(turned) {
		turned = firstDown
	}
	return up, down, turned, says
}

func times(n int) string { return words.Count(n, "time") }
