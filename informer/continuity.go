// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Continuity is what a reflector knows about the upstream's history: whether it
// continues the sink's. An etcd restored from a backup does not, and may have
// passed the sink's head with other events.
type Continuity int

const (
	// Doubtful: a watch ended as it does when the upstream stops. Before the
	// next one, the upstream has to prove its history. Proven, Diverged or a
	// list follows.
	Doubtful Continuity = iota
	// Proven: the upstream has sent the sink's last events again.
	Proven
	// Diverged: the upstream has another history. A list follows, which the
	// sink has to take as it is.
	Diverged
)

// setContinuity reports a continuity.
func (r *reflector[O]) setContinuity(c Continuity) {
	if r.opts.Continuity != nil {
		r.opts.Continuity(c)
	}
}

const (
	maxTail   = 8 // events in recent.tail
	maxNewest = 4 // objects in recent.newest
)

// A recent is what a reflector remembers of its sink's history, to recognize it.
//
//	list 3000: a@2990 ── b@3005 ── c@3017 ── bookmark: head 3100
//	since 3000, newest [a@2990 …], tail [b@3005 c@3017]
type recent struct {
	known bool // false: nothing is known
	// tail has the last events up to the head, all those after since unless dropped
	// is set: then events at that RV may be missing in front.
	since   uint64
	dropped uint64
	tail    []Known
	// newest are the objects at since that have the highest RVs, the newest first. If
	// newestAt is set, it returns them instead.
	newest   []Known
	newestAt func(context.Context) ([]Known, error)
}

// recentAtHead returns what is remembered if only objects are known.
func (r *reflector[O]) recentAtHead(newestAt func(context.Context) ([]Known, error)) recent {
	c := recent{known: newestAt != nil, since: r.resumeRV(), newestAt: newestAt}
	if r.afterDelete {
		c.dropped = r.sink.Head()
	}
	return c
}

// objects returns the newest objects at since.
func (c *recent) objects(ctx context.Context) ([]Known, error) {
	if c.newestAt != nil {
		return c.newestAt(ctx)
	}
	return c.newest, nil
}

// event adds the event that the sink has received last.
func (c *recent) event(k Known) {
	if n := len(c.tail); n > 0 && c.tail[n-1] == k {
		return // repeated
	}
	if !c.known {
		c.known, c.since, c.dropped = true, k.RV-1, k.RV
	}
	c.tail, c.newest, c.newestAt = append(c.tail, k), nil, nil
	if n := len(c.tail) - maxTail; n > 0 {
		c.dropped = c.tail[n-1].RV
		c.tail = slices.Delete(c.tail, 0, n)
		c.since = c.tail[0].RV - 1
	}
}

// isNewest reports whether an object with this RV is one of the newest listed so far.
func (c *recent) isNewest(rv uint64) bool {
	return len(c.newest) < maxNewest || rv > c.newest[len(c.newest)-1].RV
}

// item adds an object of the list.
func (c *recent) item(k Known) {
	i, _ := slices.BinarySearchFunc(c.newest, k.RV, func(n Known, rv uint64) int { return cmp.Compare(rv, n.RV) })
	c.newest = slices.Insert(c.newest, i, k)
	c.newest = c.newest[:min(len(c.newest), maxNewest)]
}

// A continuityCheck compares what a watch sends with the events that the sink knows.
type continuityCheck struct {
	known   map[versionID]Known // the tail
	missing map[versionID]bool  // events of the tail that were not received so far
}

// A versionID identifies a version of an object in a history.
type versionID struct {
	key kube.Key
	rv  uint64
}

// doubt makes the upstream prove its history before the next watch.
func (r *reflector[O]) doubt() {
	if r.state = stateVerify; !r.recent.known {
		return
	}
	r.state = stateProve
	r.setPhase(Retrying)
	r.setContinuity(Doubtful)
}

// sameHistory ends the proof.
func (r *reflector[O]) sameHistory() {
	r.state, r.proven = stateWatch, true
	if len(r.recent.tail) > 0 {
		r.recent.newestAt = nil // of the resume only
	}
	r.setContinuity(Proven)
}

// prove makes the upstream prove its history. If it has to send events again, prove
// follows that watch, and returns true with its end. empty says that the collection is
// empty upstream.
func (r *reflector[O]) prove(ctx context.Context, empty bool) (watched bool, err error) {
	if len(r.recent.tail) > 0 {
		err := r.replay(ctx)
		if r.state != stateProve || r.recent.newestAt == nil || !errors.Is(err, errExpired) {
			return true, err
		}
		r.recent = r.recentAtHead(r.recent.newestAt) // the tail is compacted upstream
	}
	known, err := r.compareNewest(ctx, empty)
	if err != nil {
		return false, err
	}
	r.recent.newest, r.recent.newestAt = known, nil
	if r.recent.since < r.resumeRV() {
		return true, r.replay(ctx)
	}
	r.sameHistory()
	return false, nil
}

// replay opens a watch that has to send the tail again, and nothing else up to the head,
// and follows it.
func (r *reflector[O]) replay(ctx context.Context) error {
	c := &continuityCheck{known: map[versionID]Known{}, missing: map[versionID]bool{}}
	for _, k := range r.recent.tail {
		id := versionID{k.Key, k.RV}
		c.known[id], c.missing[id] = k, true
	}
	r.check = c
	s, err := r.open(ctx, url.Values{"resourceVersion": {kube.FormatRV(r.recent.since)}})
	if err != nil {
		return err
	}
	defer s.close()
	if len(c.missing) == 0 {
		r.setPhase(Watching)
		r.sink.Flush() // shows the sink that there is a watch
	}
	return r.follow(ctx, s)
}

// checkFrame compares a frame of the watch that replays the tail with the sink's
// events. isNew reports whether the sink has to receive the frame.
func (r *reflector[O]) checkFrame(f frame[O]) (isNew bool, err error) {
	c, head := r.check, r.sink.Head()
	if f.rv > head || f.typ == kube.Bookmark && f.rv == head {
		if len(c.missing) > 0 {
			return false, fmt.Errorf("%w: %d of the last events up to %d are missing", errDiverged, len(c.missing), head)
		}
		r.sameHistory()
		return true, nil
	}
	if f.typ == kube.Bookmark {
		return false, nil
	}
	o := r.encoding.known(f.object)
	id := versionID{o.Key, f.rv}
	k, ok := c.known[id]
	switch {
	case ok && k.UID == o.UID && k.Deleted == (f.typ == kube.Deleted):
		if delete(c.missing, id); len(c.missing) == 0 {
			r.setPhase(Watching)
			r.sink.Flush() // shows the sink that there is a watch
		}
		return false, nil
	case !ok && f.typ == kube.Deleted && f.rv == head:
		return true, nil // one of several deletions that share the head's RV
	case !ok && f.typ == kube.Deleted && f.rv == r.recent.dropped:
		return false, nil // likewise, at the RV of the first known event
	}
	return false, fmt.Errorf("%w: unknown event %s %s at %d", errDiverged, f.typ, o.Key, f.rv)
}

// compareNewest gets the newest objects and compares their versions with those
// that the sink knows, which it returns.
func (r *reflector[O]) compareNewest(ctx context.Context, empty bool) ([]Known, error) {
	known, err := r.recent.objects(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: read the newest known objects: %w", errExpired, err)
	}
	head := r.sink.Head()
	for _, k := range known {
		o, err := r.metadata(ctx, k.Key)
		refused, isRefused := errors.AsType[*RefusedError](err)
		switch {
		case isRefused && refused.Code == http.StatusNotFound: // deleted since, or never there
		case isRefused: // list and watch may be allowed where get is not
		case err != nil:
			return nil, err
		case o.UID == k.UID && o.RV == k.RV:
			return known, nil // older ones would prove less
		case o.RV <= head:
			return nil, fmt.Errorf("%w: %s is known at %d, upstream has %d", errDiverged, k.Key, k.RV, o.RV)
		}
	}
	if len(known) > 0 || !empty {
		return nil, fmt.Errorf("%w: no object proves the history up to %d", errExpired, head)
	}
	return known, nil
}

// metadata gets an object's metadata.
func (r *reflector[O]) metadata(ctx context.Context, key kube.Key) (o *scan.Object, err error) {
	u := *r.opts.URL
	dir, resource := path.Split(u.Path)
	if namespace := key.Namespace(); namespace != "" && !strings.HasSuffix(dir, "/namespaces/"+namespace+"/") {
		dir += "namespaces/" + namespace + "/"
	}
	u.Path, u.RawPath, u.RawQuery = dir+resource+"/"+key.Name(), "", ""
	err = r.request(ctx, &u, acceptMetadata, func(body io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(body, maxFrame))
		if err == nil {
			o, err = scan.ParseObject(string(text))
		}
		return err
	})
	return o, err
}

const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
