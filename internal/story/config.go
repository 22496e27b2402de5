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

// config describes changes of configuration: which keys, never their values.
func (t *teller) config() {
	described := map[*entry]bool{} // with what it is about
	for _, ep := range t.episodes {
		for _, e := range ep.claims {
			described[e] = true
		}
	}
	for _, th := range t.ofKind(configKinds...) {
		var entries []*entry
		for _, s := range th.states {
			if s.entry != nil && !s.entry.onlyStatus && !described[s.entry] {
				entries = append(entries, s.entry)
			}
		}
		if th.last != nil && !described[th.last] {
			entries = append(entries, th.last)
		}
		for len(entries) > 0 {
			n := 1
			for n < len(entries) && entries[n].Time.Sub(entries[n-1].Time) <= maxTogether {
				n++
			}
			ep := &episode{rank: rankConfig}
			ep.Kind, ep.Severity, ep.From, ep.To = api.EpisodeConfig, api.EpisodeInfo, entries[0].Time, entries[n-1].Time
			ep.claims = entries[:n]
			var what []string
			for _, e := range entries[:n] {
				what = appendOnce(what, brief(strings.Join(e.What, "; "))+e.by())
			}
			ep.Title = fmt.Sprintf("%s %s: %s", th.kind, th.key.Name(), strings.Join(what, "; "))
			t.add(ep)
			entries = entries[n:]
		}
	}
}

// maxTogether is the pause after which another change of an object is another episode.
const maxTogether = 5 * time.Second

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
