// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// configKinds are the kinds of objects that configure others, or limit them.
var configKinds = []string{"ConfigMap", "Secret", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "PriorityClass", "HorizontalPodAutoscaler"}

// config tells changes of configuration: which keys, never their values.
func (t *teller) config() {
	for _, th := range t.ofKind(configKinds...) {
		var entries []*entry
		for _, s := range th.states {
			if s.entry != nil && !s.entry.onlyStatus {
				entries = append(entries, s.entry)
			}
		}
		if th.last != nil {
			entries = append(entries, th.last)
		}
		for len(entries) > 0 {
			n := 1
			for n < len(entries) && entries[n].Time.Sub(entries[n-1].Time) <= maxApart {
				n++
			}
			ep := &episode{rank: rankConfig}
			ep.Kind, ep.Severity, ep.From, ep.To = api.EpisodeConfig, api.EpisodeInfo, entries[0].Time, entries[n-1].Time
			ep.claims = entries[:n]
			var what, by []string
			for _, e := range entries[:n] {
				for _, w := range e.What {
					what = appendOnce(what, w)
				}
				for _, who := range e.By {
					by = appendOnce(by, who)
				}
			}
			ep.Title = fmt.Sprintf("%s %s: %s", th.kind, th.key.Name(), clip(strings.Join(what, "; "), maxDetail))
			if len(by) > 0 {
				ep.Title += " by " + strings.Join(by, ", ")
			}
			t.add(ep)
			entries = entries[n:]
		}
	}
}

// maxConfig is how long before a failure changes of configuration are mentioned with it.
const maxConfig = 10 * time.Minute

// changedBefore says which ConfigMaps and Secrets that failed Pods use were changed shortly
// before. That they are the cause is not said: no object says so.
func (t *teller) changedBefore(ep *episode, g *group) string {
	var said []string
	for _, th := range t.ofKind("ConfigMap", "Secret") {
		uses := slices.ContainsFunc(g.all, func(f *failure) bool {
			return f.pod.key.Namespace() == th.key.Namespace() && slices.Contains(Uses(f.pod.final().asPod()), Used{th.kind, th.key.Name()})
		})
		if !uses {
			continue
		}
		if text := changedAt(th, g.from, ", which these Pods use,"); text != "" {
			said = append(said, text)
		}
	}
	return list(said, 2)
}

// changedAt says how a thing was last changed shortly before a time, "" if it was not. An
// explanation follows its name.
func changedAt(th *thing, before time.Time, explanation string) string {
	var last *entry
	changes := make([]*entry, 0, len(th.states)+1)
	for _, s := range th.states {
		changes = append(changes, claim(s)...)
	}
	if th.last != nil {
		changes = append(changes, th.last)
	}
	for _, e := range changes {
		if !e.onlyStatus && within(e.Time, before.Add(-maxConfig), before) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return fmt.Sprintf("%s before it, %s %s%s was changed (%s)%s",
		lasted(before.Sub(last.Time)), th.kind, th.key.Name(), explanation, clip(strings.Join(last.What, "; "), maxDetail), last.by())
}

// Used names an object that a Pod uses, in its namespace.
type Used struct{ Kind, Name string }

// Uses returns the ConfigMaps, Secrets and PersistentVolumeClaims that a Pod's spec names,
// without the ones that every Pod has.
func Uses(pod *corev1.Pod) (all []Used) {
	add := func(kind, name string) {
		if u := (Used{kind, name}); name != "" && name != "kube-root-ca.crt" && !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if s := v.ConfigMap; s != nil {
			add("ConfigMap", s.Name)
		}
		if s := v.Secret; s != nil {
			add("Secret", s.SecretName)
		}
		if s := v.PersistentVolumeClaim; s != nil {
			add("PersistentVolumeClaim", s.ClaimName)
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add("ConfigMap", s.ConfigMap.Name)
			}
			if s.Secret != nil {
				add("Secret", s.Secret.Name)
			}
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, from := range c.EnvFrom {
			if s := from.ConfigMapRef; s != nil {
				add("ConfigMap", s.Name)
			}
			if s := from.SecretRef; s != nil {
				add("Secret", s.Name)
			}
		}
		for _, env := range c.Env {
			if env.ValueFrom == nil {
				continue
			}
			if s := env.ValueFrom.ConfigMapKeyRef; s != nil {
				add("ConfigMap", s.Name)
			}
			if s := env.ValueFrom.SecretKeyRef; s != nil {
				add("Secret", s.Name)
			}
		}
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		add("Secret", s.Name)
	}
	return all
}
