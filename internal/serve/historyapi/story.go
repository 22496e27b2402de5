// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/story"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// StoryPath is the root of stories. They need the same rights as the history.
const StoryPath = "/watchkeeper/v1/story"

// storyName is the name of the endpoint of stories, which is not below Path.
const storyName = "/story"

// defaultStory is how long before its end a story begins.
const defaultStory = time.Hour

// The limits of a story. What they leave out is said in the answer. Tests change some of them.
//
// maxStoryBytes, maxObjects and maxVersions bound what a story is written from, maxListed the
// objects of a resource among which related ones are looked for.
const maxStoryBytes = 128 << 20

var (
	maxListed   = 20_000
	maxObjects  = 1000
	maxVersions = 20_000
	// maxEvents bounds the versions of Events that are read.
	maxEvents = 10_000
)

// story describes what happened to an object and what it owns, is owned by, runs on and mounts.
func (c *call) story() (any, error) {
	t, _, err := c.target()
	if err != nil {
		return nil, err
	}
	if t.Name == "" {
		return nil, refuseBad("%s is a collection: a story is that of one object", c.path)
	}
	until, to, err := c.moment(t.Resource, "until", "now")
	if err != nil {
		return nil, err
	}
	since, from, err := c.moment(t.Resource, "since", kube.Moment{At: to.Add(-defaultStory)}.String())
	if err != nil {
		return nil, err
	}
	release, _, err := c.Past.AcquireList(c.r.Context(), 0)
	if err != nil {
		return nil, err
	}
	defer release()
	if to.After(c.now) {
		to = c.now
	}
	w := &storyWriter{call: c, namespace: t.Namespace, from: from, to: to, spans: map[kube.Resource][]eventRange{}, found: map[string]*related{}, left: map[string]int{}}
	w.since, w.until = kube.Moment{At: w.from, Ago: since.Ago}, kube.Moment{At: to, Ago: until.Ago}
	if !w.from.Before(w.to) {
		return nil, refuseBad("since is not before until")
	}
	if err := w.find(t.Resource, kube.MakeKey(t.Namespace, t.Name)); err != nil {
		return nil, err
	}
	in := story.Input{Resource: t.Resource, Key: kube.MakeKey(t.Namespace, t.Name), From: w.from, To: w.to}
	for _, r := range w.order {
		o, err := w.read(r)
		if err != nil {
			return nil, err
		}
		in.Objects = append(in.Objects, o)
	}
	if !slices.ContainsFunc(in.Objects, func(o story.Object) bool {
		return o.Resource == in.Resource && o.Key == in.Key && (o.Initial != nil || len(o.Versions) > 0)
	}) {
		limit, details := c.missed(t.Namespace, c.unobserved([]kube.Resource{t.Resource}, w.from, w.to)), past.Details(past.NothingRecorded, t.Resource, w.from, w.to)
		if begin := c.begin(t.Resource); begin.After(w.to) {
			limit, details = fmt.Sprintf("; nothing is recorded before %s: choose a later moment", past.Stamp(begin)), past.Details(past.BeforeRecord, t.Resource, begin, time.Time{})
		}
		s := status.NotFound(fmt.Sprintf("nothing is recorded of %s %q between %s and %s%s", t.Resource.GroupResource(), in.Key, past.Stamp(w.from), past.Stamp(w.to), limit))
		s.Details = details
		return nil, &status.Error{Status: s}
	}
	in.Last = w.last(t.Resource, in.Objects)
	var read []kube.Resource
	for _, r := range w.order {
		if !slices.Contains(read, r.resource) {
			read = append(read, r.resource)
		}
	}
	in.Unobserved = c.unobserved(read, w.from, w.to)
	out := story.Tell(in)
	out.NotRecorded, out.Denied, out.LeftOut, out.Unobserved = w.notRecorded(), w.denied, w.leftOut(), in.Unobserved
	c.addLogs(&out, in.Objects)
	return out, nil
}

// moment returns a moment that a parameter names, and its time. A resourceVersion is one of
// the resource.
func (c *call) moment(r kube.Resource, parameter, usual string) (kube.Moment, time.Time, error) {
	when, err := c.when(parameter, usual)
	if err != nil || when.RV == 0 {
		return when, when.At, err
	}
	state, err := c.locate(r, when)
	return when, state.Since, err
}

// A related object is one that a story is about.
type related struct {
	resource kube.Resource
	key      kube.Key
	events   bool // it is an Event, whose versions are already read
	object   story.Object
}

// A storyWriter reads what a story is written from.
type storyWriter struct {
	*call
	namespace    string
	from, to     time.Time
	since, until kube.Moment

	spans map[kube.Resource][]eventRange // see ranges
	found map[string]*related            // by resource and key
	order []*related                     // in the order in which they were found

	denied   []string
	left     map[string]int // what limits have left out
	versions int
	bytes    int
}

// add adds a related object, once.
func (w *storyWriter) add(r kube.Resource, key kube.Key) bool {
	id := r.String() + "\x00" + string(key)
	if w.found[id] != nil {
		return false
	}
	if len(w.order) >= maxObjects {
		w.left["objects"]++
		return false
	}
	one := &related{resource: r, key: key}
	w.found[id] = one
	w.order = append(w.order, one)
	return true
}

// allowed returns the recorded ones of some resources that the caller may read in a namespace
// now (T8).
func (w *storyWriter) allowed(resources []kube.Resource, namespace string) (out []kube.Resource, err error) {
	refused, err := w.decide(resources, namespace)
	for i, r := range resources {
		if err == nil && refused[i] == nil {
			out = append(out, r)
		} else if err == nil {
			name := r.GroupResource()
			switch {
			case namespace == w.namespace, w.cluster[r]:
			case namespace == "":
				name += " of other namespaces"
			default:
				name += " of namespace " + namespace
			}
			if !slices.Contains(w.denied, name) {
				w.denied = append(w.denied, name)
			}
		}
	}
	return out, err
}

// ranges returns the ranges of a resource's epochs that are in the span of the story.
func (w *storyWriter) ranges(r kube.Resource) (all []eventRange, err error) {
	if all, ok := w.spans[r]; ok {
		return all, nil
	}
	streams := w.store.Streams(r)
	for i, st := range streams {
		one, ok, err := rangeOf(w.r.Context(), st, i == len(streams)-1, w.since, w.until)
		if err != nil {
			return nil, err
		}
		switch span := st.Span(); {
		case span.From.RV == 0, !ok && one.from != one.to, span.From.At.After(w.to), i < len(streams)-1 && span.To.At.Before(w.from):
			continue
		}
		// The state at the begin is that of the last event before it.
		if at, err := st.At(w.r.Context(), w.from); err == nil {
			one.from = max(one.from, min(at.RV, one.to))
		}
		all = append(all, one)
	}
	w.spans[r] = all
	return all, nil
}

// read reads the versions of an object.
func (w *storyWriter) read(r *related) (story.Object, error) {
	if r.events {
		return r.object, nil
	}
	o := story.Object{Resource: r.resource, Key: r.key}
	ctx := w.r.Context()
	ranges, err := w.ranges(r.resource)
	if err != nil {
		return o, err
	}
	for i, one := range ranges {
		before, err := one.Get(ctx, one.from, r.key)
		if err != nil {
			return o, err
		}
		if i == 0 {
			o.Initial = before
			if begin := one.Span().From.At; begin.After(w.from) {
				o.Since = begin
			}
		} else if x := (crossing{ranges[i-1].Stream, one.Stream}); x.known() {
			changes, err := x.of(ctx, r.key)
			if err != nil {
				return o, err
			}
			for _, e := range changes {
				if w.take(e.Object) {
					o.Versions = append(o.Versions, story.Version{Type: e.Type, Time: e.At, Inferred: true, NotBefore: x.since(), Object: e.Object})
				}
			}
		}
		gaps := one.Gaps()
		for e, err := range one.Versions(ctx, r.key, one.from) {
			if err != nil {
				return o, err
			}
			if e.Object.RV > one.to {
				break
			}
			if e.At.Before(w.from) { // a gap ends there
				o.Initial = e.Object
				if e.Type == kube.Deleted {
					o.Initial = nil
				}
				continue
			}
			if !w.take(e.Object) {
				continue
			}
			o.Versions = append(o.Versions, versionOf(e, gaps))
		}
	}
	return o, nil
}

// last returns the time after which nothing is known of a resource until the end of the story,
// but not before the last version; zero if its state at the end is known.
func (w *storyWriter) last(r kube.Resource, objects []story.Object) (last time.Time) {
	for _, span := range w.unobserved([]kube.Resource{r}, w.to.Add(-time.Millisecond), w.to) {
		if span.Reason != api.BeforeRecord && !span.To.Before(w.to) && (last.IsZero() || span.From.Before(last)) {
			last = span.From
		}
	}
	for _, o := range objects {
		if n := len(o.Versions); n > 0 && !last.IsZero() && o.Versions[n-1].Time.After(last) {
			last = o.Versions[n-1].Time
		}
	}
	return last
}

// take reports whether one more version may be read, and counts it.
func (w *storyWriter) take(o *scan.Object) bool {
	if w.versions >= maxVersions || w.bytes >= maxStoryBytes {
		w.left["versions"]++
		return false
	}
	w.versions++
	w.bytes += len(o.JSON)
	return true
}

func versionOf(e history.Event, gaps []history.Gap) story.Version {
	v := story.Version{Type: e.Type, Time: e.At, Inferred: e.Inferred, Object: e.Object}
	for _, g := range gaps {
		if g.Holds(e) {
			v.NotBefore = g.Since
		}
	}
	return v
}

// storyResources are the resources that stories are also about, if they are recorded.
var storyResources = []string{
	"configmaps", "daemonsets.apps", "deployments.apps", "events", "horizontalpodautoscalers.autoscaling", "jobs.batch", "nodes",
	"persistentvolumeclaims", "poddisruptionbudgets.policy", "pods", "replicasets.apps", "resourcequotas", "secrets", "statefulsets.apps",
}

// notRecorded returns the resources of which nothing is recorded, and that the story would also
// be about.
func (w *storyWriter) notRecorded() (out []string) {
	recorded := w.store.Resources()
	for _, name := range storyResources {
		if !slices.ContainsFunc(recorded, func(r kube.Resource) bool {
			return (r.GroupResource() == name || name == "events" && isEvents(r)) && !w.begin(r).IsZero()
		}) {
			out = append(out, name)
		}
	}
	return out
}

// leftOut says what limits have left out.
func (w *storyWriter) leftOut() (out []string) {
	if text := w.outside(w.namespace); text != "" {
		out = append(out, text)
	}
	for _, what := range []struct {
		name  string
		limit int
	}{{"objects", maxObjects}, {"versions", maxVersions}, {"Events", maxEvents}, {"listed", maxListed}} {
		n := w.left[what.name]
		switch {
		case n == 0:
		case what.name == "listed":
			out = append(out, fmt.Sprintf("related objects were looked for among the first %d of each resource only", maxListed))
		case what.name == "Events":
			out = append(out, fmt.Sprintf("only the newest %d versions of Events were read", maxEvents))
		default:
			out = append(out, fmt.Sprintf("%d %s, over the limit of %d (or of %d MiB)", n, what.name, what.limit, maxStoryBytes>>20))
		}
	}
	return out
}

// ownedBy are the fields that related objects are found by.
type ownedBy struct {
	Metadata struct {
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
		Labels            map[string]string       `json:"labels"`
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName       string `json:"nodeName"`
		ScaleTargetRef struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		Selector *metav1.LabelSelector `json:"selector"`
	} `json:"spec"`
}
