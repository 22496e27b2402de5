// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// core is what is recorded by default, as resource.group.
var core = []string{
	"nodes", "namespaces", "pods", "services", "persistentvolumeclaims", "events",
	"deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "replicationcontrollers",
	"jobs.batch", "cronjobs.batch", "horizontalpodautoscalers.autoscaling",
}

const (
	secrets = "secrets"
	leases  = "leases.coordination.k8s.io"
)

// aliases are resources that show the objects of another one, which is the one
// to record if both are to be.
var aliases = map[string]string{"events.events.k8s.io": "events"}

// A Selection says which resources are recorded. The zero value is none.
type Selection struct {
	include, exclude []pattern
	secrets          bool
}

// A pattern is one of a selection's.
type pattern struct {
	text        string
	set         string // "core" or "*"; "" if it is not a set
	name, group string // may have *
	anyGroup    bool
}

// Select returns the selection of what the patterns include and do not exclude.
//
//	pods              the resource, in whatever group it is
//	deployments.apps  the resource of the group
//	apps/*            all of the group; core/* is the group of the core API
//	*.example.com     all whose group is, or ends in, example.com
//	core              what a person wants to know of the workloads of a cluster
//	*                 all but Secrets and Leases
//
// A * in a name or group stands for any characters. Secrets are only recorded
// withSecrets, and then always.
func Select(include, exclude []string, withSecrets bool) (Selection, error) {
	s := Selection{secrets: withSecrets}
	for _, list := range []struct {
		from []string
		to   *[]pattern
	}{{include, &s.include}, {exclude, &s.exclude}} {
		for _, text := range list.from {
			p, err := parsePattern(text)
			if err != nil {
				return Selection{}, err
			}
			*list.to = append(*list.to, p)
		}
	}
	if !withSecrets && slices.ContainsFunc(s.include, pattern.namesSecrets) {
		return Selection{}, errors.New("secrets are recorded with --record-secrets only: whoever may read the disk can then read them")
	}
	return s, nil
}

func parsePattern(text string) (pattern, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	bad := func(why string) (pattern, error) {
		return pattern{}, fmt.Errorf("%q is no pattern for resources: %s; use such as pods, deployments.apps, apps/*, *.example.com, core or *", text, why)
	}
	if t == "core" || t == "*" {
		return pattern{text: text, set: t}, nil
	}
	if strings.Trim(t, "abcdefghijklmnopqrstuvwxyz0123456789-.*/") != "" || t == "" {
		return bad("there are other characters than letters, digits, '-', '.', '/' and '*'")
	}
	if group, name, ok := strings.Cut(t, "/"); ok {
		if group == "" || name == "" || strings.ContainsAny(name, "/.") {
			return bad("what has a '/' is GROUP/RESOURCE")
		}
		if group == "core" {
			group = ""
		}
		return pattern{text: text, name: name, group: group}, nil
	}
	name, group, ok := strings.Cut(t, ".")
	if name == "" || ok && group == "" {
		return bad("what has a '.' is RESOURCE.GROUP")
	}
	return pattern{text: text, name: name, group: group, anyGroup: !ok}, nil
}

// namesSecrets reports whether the pattern can only mean Secrets.
func (p pattern) namesSecrets() bool {
	return p.set == "" && p.name == secrets && (p.anyGroup || p.group == "")
}

func (p pattern) matches(r kube.Resource) bool {
	switch p.set {
	case "core":
		return slices.Contains(core, r.GroupResource())
	case "*":
		return r.GroupResource() != leases
	}
	if !glob(p.name, r.Name) {
		return false
	}
	return p.anyGroup || glob(p.group, r.Group) || p.name == "*" && p.group != "" && glob("*."+p.group, r.Group)
}

// Matches reports whether the resource is recorded, by its name alone: whether
// it can be is not known here.
func (s Selection) Matches(r kube.Resource) bool {
	if r.Name == secrets { // an aggregated API may have some, too
		return s.secrets
	}
	is := func(p pattern) bool { return p.matches(r) }
	return slices.ContainsFunc(s.include, is) && !slices.ContainsFunc(s.exclude, is)
}

// Withholds reports whether what was recorded of a resource is not to be told:
// Secrets, once they are not to be recorded any more.
func (r *Recorder) Withholds(id kube.Resource) bool {
	return r != nil && id.Name == secrets && !r.opts.Select.secrets
}

// Empty reports whether nothing is recorded.
func (s Selection) Empty() bool { return len(s.include) == 0 && !s.secrets }

// Choose returns those of the resources that are recorded: of two that show the
// same objects, one.
func (s Selection) Choose(all []kube.Resource) []kube.Resource {
	var out []kube.Resource
	for _, r := range all {
		if s.Matches(r) {
			out = append(out, r)
		}
	}
	return slices.DeleteFunc(out, func(r kube.Resource) bool {
		of, ok := aliases[r.GroupResource()]
		return ok && slices.ContainsFunc(out, func(other kube.Resource) bool { return other.GroupResource() == of })
	})
}

// glob reports whether text is as the pattern says, in which * is any characters.
func glob(pattern, text string) bool {
	first, rest, ok := strings.Cut(pattern, "*")
	if !ok {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	for text = text[len(first):]; ; text = text[1:] {
		if glob(rest, text) {
			return true
		}
		if text == "" {
			return false
		}
	}
}

// Unmatched returns the patterns that are to be included, and match none of the
// resources.
func (s Selection) Unmatched(all []kube.Resource) (texts []string) {
	for _, p := range s.include {
		if !slices.ContainsFunc(all, p.matches) {
			texts = append(texts, p.text)
		}
	}
	return texts
}
