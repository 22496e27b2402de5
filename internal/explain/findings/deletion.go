// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/words"
	"github.com/watchkeeper/watchkeeper/internal/explain/workload"
)

// A terminatingObject is one whose deletion was requested.
type terminatingObject struct {
	ref        Ref
	light      *workload.Object
	finalizers []string
	namespace  *corev1.Namespace // nil for other objects
}

func (s *State) addTerminating(r kube.Resource, o *scan.Object) {
	t := &terminatingObject{ref: Ref{Resource: r.GroupResource(), Kind: o.Kind, Key: o.Key}, light: workload.Read(o)}
	if t.light.Metadata.DeletionTimestamp == nil {
		return
	}
	t.finalizers = slices.Sorted(slices.Values(t.light.Metadata.Finalizers))
	if r.GroupResource() == "namespaces" {
		n := &corev1.Namespace{}
		if json.Unmarshal([]byte(o.JSON), n) == nil {
			t.namespace = n
			for _, f := range n.Spec.Finalizers {
				t.finalizers = append(t.finalizers, string(f))
			}
		}
	}
	s.terminating = append(s.terminating, t)
}

// deletions finds objects whose deletion was requested more than a minute ago, and that are
// still there: a finalizer holds them, or a Pod's kubelet does not say that it has ended.
func (s *State) deletions(g *group) {
	slices.SortFunc(s.terminating, func(a, b *terminatingObject) int { return compareRefs(a.ref, b.ref) })
	for _, t := range s.terminating {
		m := t.light.Metadata
		end := m.DeletionTimestamp.Time
		requested := change.Requested(end, m.DeletionGracePeriodSeconds)
		pod := t.ref.Kind == "Pod" && t.ref.Resource == "pods"
		now := s.at(t.ref.Resource)
		if now.Sub(requested) < minAge || now.Before(end) || len(t.finalizers) == 0 && !pod {
			continue
		}
		held := strings.Join(t.finalizers, ", ")
		subject, severity := t.ref, api.SeverityWarning
		if pod {
			subject = s.workload(t.ref, m.OwnerReferences)
			severity = s.severity(subject)
		}
		f := g.of(subject, held, severity)
		f.Objects = append(f.Objects, t.ref)
		f.from(requested)
		if pod && held != "" && len(f.Related) < maxNodes {
			f.Related = append(f.Related, t.ref) // of which somebody has added the finalizer
		}
		if pod {
			if i := slices.IndexFunc(s.pods, func(p *corev1.Pod) bool { return podRef(p) == t.ref }); i >= 0 {
				f.say(disruption(s.pods[i]))
			}
		}
		if t.namespace != nil {
			for _, c := range t.namespace.Status.Conditions {
				if c.Status == corev1.ConditionTrue {
					f.say(because(c.Reason, c.Message))
				}
			}
		}
		f.refine = func(f *Finding) {
			f.Title = "Terminating"
			if pod {
				f.Title = words.Count(len(f.Objects), "Pod") + " Terminating"
			}
			if held != "" {
				f.Title += ", held by finalizer " + held
			}
		}
	}
}
