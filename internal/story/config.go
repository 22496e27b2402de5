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
			ep.Title = fmt.Sprintf("%s %s: %s", th.kind, th.key.Name(), notes(what))
			t.add(ep)
			entries = entries[n:]
		}
	}
}

const (
	// maxConfig is how long before a failure changes of configuration are mentioned with it.
	maxConfig = 10 * time.Minute
	// maxTogether is the pause after which another change of an object is another episode.
	maxTogether = 5 * time.Second
)

// changes says which ConfigMaps and Secrets that failed Pods use were changed shortly before
// the failures, or meanwhile. That they are the cause is not said: no object says so.
func (t *teller) changes(g *group) string {
	var said []string
	for _, th := range t.ofKind("ConfigMap", "Secret") {
		uses := slices.ContainsFunc(g.all, func(f *failure) bool {
			return f.pod.key.Namespace() == th.key.Namespace() && slices.Contains(Uses(f.pod.final().asPod()), Used{th.kind, th.key.Name()})
		})
		if uses {
			said = append(said, changesOf(th, g.from, g.to, ", which these Pods use,")...)
		}
	}
	return notes(said)
}

// maxNotes limits the changes that are said of an episode.
const maxNotes = 3

// notes joins what is said of changes.
func notes(all []string) string {
	if more := len(all) - maxNotes; more > 0 {
		all = append(slices.Clone(all[:maxNotes]), fmt.Sprintf("%s more", plural(more, "change")))
	}
	return strings.Join(all, "; ")
}

// changesOf says how a thing was changed shortly before a time, and until another. An
// explanation follows its name.
func changesOf(th *thing, from, to time.Time, explanation string) (said []string) {
	all := make([]*entry, 0, len(th.states)+1)
	for _, s := range th.states {
		all = append(all, claim(s)...)
	}
	if th.last != nil {
		all = append(all, th.last)
	}
	for _, e := range all {
		if e.onlyStatus || !within(e.Time, from.Add(-maxConfig), to) {
			continue
		}
		when := lasted(from.Sub(e.Time)) + " before it"
		if e.Time.After(from) {
			when = lasted(e.Time.Sub(from)) + " after its begin"
		}
		what := "created"
		switch e.Type {
		case api.Modified:
			what = "changed (" + brief(strings.Join(e.What, "; ")) + ")"
		case api.Deleted:
			what = "deleted"
		}
		said = append(said, fmt.Sprintf("%s, %s %s%s was %s%s", when, th.kind, th.key.Name(), explanation, what, e.by()))
		explanation = ""
	}
	return said
}

// quotaChanges says how the ResourceQuotas that a message names were changed.
func (t *teller) quotaChanges(message string, from, to time.Time) string {
	var said []string
	for _, th := range t.ofKind("ResourceQuota") {
		if strings.Contains(message, "exceeded quota: "+th.key.Name()+",") {
			said = append(said, changesOf(th, from, to, "")...)
		}
	}
	return notes(said)
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
