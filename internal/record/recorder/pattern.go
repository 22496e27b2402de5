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

// core are the resources that are recorded by default, as resource.group.
var core = []string{
	"nodes", "namespaces", "pods", "services", "persistentvolumeclaims", "events",
	"deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "replicationcontrollers",
	"jobs.batch", "cronjobs.batch", "horizontalpodautoscalers.autoscaling",
}

const (
	secrets = "secrets"
	leases  = "leases.coordination.k8s.io"
)

// aliases maps resources to others with the same objects. If both are selected, the
// other one is recorded.
var aliases = map[string]string{"events.events.k8s.io": "events"}

// A Selection selects the resources that are recorded. The zero value selects none.
type Selection struct {
	include, exclude []pattern
	secrets          bool
}

// A pattern is a pattern of a Selection.
type pattern struct {
	text        string
	set         string // "core" or "*"; "" if it is not a set
	name, group string // can contain *
	anyGroup    bool
}

// Select returns the selection of the resources that the patterns include and do not
// exclude.
//
//	pods              the resource, in any group; also pod, Pod, po
//	deployments.apps  the resource of the group
//	apps/*            every resource of the group; core/* is the core group
//	*.example.com     every resource whose group is, or ends in, example.com
//	core              the workloads of a cluster, and what they depend on
//	*                 every resource except Secrets and Leases
//
// A resource can have any of the names that kubectl accepts. A * in a name or group stands
// for any characters. Secrets are only recorded withSecrets, and then always.
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
		return Selection{}, errors.New("secrets are recorded with --record-secrets only: everyone who can read the disk can then read them")
	}
	return s, nil
}

func parsePattern(text string) (pattern, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	bad := func(why string) (pattern, error) {
		return pattern{}, fmt.Errorf("%q is not a pattern for resources: %s; use for example pods, deployments.apps, apps/*, *.example.com, core or *", text, why)
	}
	if t == "core" || t == "*" {
		return pattern{text: text, set: t}, nil
	}
	if strings.Trim(t, "abcdefghijklmnopqrstuvwxyz0123456789-.*/") != "" || t == "" {
		return bad("it must consist of letters, digits, '-', '.', '/' and '*'")
	}
	if group, name, ok := strings.Cut(t, "/"); ok {
		if group == "" || name == "" || strings.ContainsAny(name, "/.") {
			return bad("a pattern with '/' is GROUP/RESOURCE")
		}
		if group == "core" {
			group = ""
		}
		return pattern{text: text, name: name, group: group}, nil
	}
	name, group, ok := strings.Cut(t, ".")
	if name == "" || ok && group == "" {
		return bad("a pattern with '.' is RESOURCE.GROUP")
	}
	return pattern{text: text, name: name, group: group, anyGroup: !ok}, nil
}

// namesSecrets reports whether the pattern can only mean Secrets.
func (p pattern) namesSecrets() bool {
	return p.set == "" && (p.name == secrets || p.name == "secret") && (p.anyGroup || p.group == "")
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

// Matches reports whether a resource of this name is selected. The resource may not
// exist, or may not support recording.
func (s Selection) Matches(r kube.Resource) bool {
	if r.Name == secrets { // also those of an aggregated API
		return s.secrets
	}
	is := func(p pattern) bool { return p.matches(r) }
	return slices.ContainsFunc(s.include, is) && !slices.ContainsFunc(s.exclude, is)
}

// ErrNothing: the selection cannot match any resource.
var ErrNothing = errors.New("--record selects nothing: use --data-dir= to record nothing")

// Empty reports whether the selection cannot match any resource: nothing is included, or
// each pattern is excluded again.
func (s Selection) Empty() bool {
	if s.secrets {
		return false
	}
	for _, in := range s.include {
		if !slices.ContainsFunc(s.exclude, func(out pattern) bool { return out.set == "*" || strings.EqualFold(out.text, in.text) }) {
			return false
		}
	}
	return true
}

// Withholds reports whether the record of a resource must not be served. This applies
// to Secrets once they are no longer recorded.
func (r *Recorder) Withholds(id kube.Resource) bool {
	return r != nil && id.Name == secrets && !r.opts.Select.secrets
}

// Choose returns the selected resources, but only one of two with the same objects.
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

// glob reports whether text matches a pattern, in which * matches any characters.
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
