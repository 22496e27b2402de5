// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"fmt"
	"slices"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
)

// Recorded returns the resources that are being recorded.
func (r *Recorder) Recorded() []kube.Resource {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	s := r.session
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	var out []kube.Resource
	for _, t := range s.all() {
		out = append(out, t.id)
	}
	return out
}

// Status is the state of a recorder.
type Status struct {
	// Recording reports whether the cluster is recorded; if not, Problem says why.
	Recording bool
	Problem   string
	// NotServed says which names in the selection no resource has, and are therefore not
	// recorded.
	NotServed []string
	// Dir is the cluster's directory; Options.Dir while the cluster is not known.
	Dir string
	// Resources is the number of resources that are selected and exist. Of these, the API
	// server refuses to list and watch Refused, each with its code, which are not recorded.
	Resources int
	Refused   []string
	history.Usage
}

// Status returns the state of the recorder. ok is false for a nil Recorder.
func (r *Recorder) Status() (s Status, ok bool) {
	if r == nil {
		return Status{}, false
	}
	r.mu.Lock()
	store, session, problem, dir, notServed := r.store, r.session, r.problem, r.dir, r.notServed
	r.mu.Unlock()
	if s.Dir = r.opts.Dir; store != nil {
		s.Dir, s.Usage = dir, store.Usage()
	}
	if session != nil {
		if problem = r.checkPlace(); problem != nil {
			session.fail(problem)
			session = nil
		}
	}
	if problem != nil {
		s.Problem = problem.Error()
	}
	s.NotServed = notServed
	if s.Recording = session != nil; s.Recording {
		all := session.all()
		s.Resources = len(all)
		for _, t := range all {
			if why := t.refused.Load(); why != nil {
				s.Refused = append(s.Refused, fmt.Sprintf("%s (%d)", t.id.GroupResource(), why.Code))
			}
		}
		slices.Sort(s.Refused)
	}
	return s, true
}

func (r *Recorder) directory() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dir
}

// setNotServed sets and logs the names in the selection that no resource has.
func (r *Recorder) setNotServed(names []pattern, found upstream.Preferred) {
	var problems []string
	for _, p := range names {
		problems = append(problems, notServed(p, found).Error())
	}
	r.mu.Lock()
	before := r.notServed
	r.notServed = problems
	r.mu.Unlock()
	for _, problem := range problems {
		if !slices.Contains(before, problem) {
			r.log.Warn("not recorded for now", "cause", "--record: "+problem)
		}
	}
}
