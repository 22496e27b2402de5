// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"fmt"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
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
	// Unwatched has the other resources that were not watched for unwatchedGrace, though the
	// API server answers, each with since when.
	Unwatched []string
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
		answers := r.opts.Upstream.Contact().Err == nil
		for _, t := range all {
			if why := t.refused.Load(); why != nil {
				s.Refused = append(s.Refused, fmt.Sprintf("%s (%d)", t.id.GroupResource(), why.Code))
			} else if since := t.unwatched(); !since.IsZero() && answers {
				s.Unwatched = append(s.Unwatched, fmt.Sprintf("%s since %s", t.id.GroupResource(), since.UTC().Format(time.RFC3339)))
			}
		}
		slices.Sort(s.Refused)
		slices.Sort(s.Unwatched)
	}
	return s, true
}

// Complete reports whether everything that is selected is recorded.
func (s Status) Complete() bool {
	return s.Recording && len(s.NotServed) == 0 && len(s.Refused) == 0 && len(s.Unwatched) == 0
}

// unwatchedGrace is how long a resource may have no watch before that is reported: a denied
// list is refused as late, and a first list may take a while.
const unwatchedGrace = 30 * time.Second

// unwatched returns since when nothing was observed of a resource without a watch; zero if it
// has one, or had one within unwatchedGrace.
func (r *resourceRecorder) unwatched() time.Time {
	since, found, s := r.began, r.began, r.w.silence.get()
	if r.w.position().RV != 0 {
		since, found = s.since, s.found
		if !s.again.IsZero() {
			since, found = s.again, s.again
		}
		if !s.unwatched {
			return time.Time{}
		}
	}
	if r.s.r.opts.Now().Sub(found) < unwatchedGrace {
		return time.Time{}
	}
	return since
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
