// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A Resume is the state of an earlier reflector at the sink's head. With it,
// [Reflector.Run] begins with a watch from the head.
//
// An upstream whose RV is not below the head may still have another history:
// an etcd restored from a backup continues at a lower RV and may have passed
// the head with other events. So the first watch begins before the last known
// events, and the upstream has to send them again:
//
//	known       ──── a@12 ── b@15 ──── head 20
//	same        ──── a@12 ── b@15 ─────────────── c@23    resumed
//	restored    ─ backup 10 ─── a@14 ──────────── c@23    relisted
//
// If the upstream has compacted these events, or none are known, the reflector
// gets some objects and compares their versions.
type Resume struct {
	// List is the metadata of the last list: its kind, form and columns. Items
	// are ignored. Without it, Run begins with a list.
	List *scan.List
	// AfterDelete says that the last event was a deletion at the head. Others
	// with the same RV may follow.
	AfterDelete bool
	// Tail has the last events up to the head, in order and without a gap. It
	// may be empty.
	Tail []Known
	// Newest returns some objects as of the head, preferably those with the
	// highest RVs; none if there are none. It is called by the goroutine of
	// Run when Tail is not sufficient. Nil accepts any upstream whose RV is
	// not below the head.
	Newest func(context.Context) ([]Known, error)
	// Diverged is called by the goroutine of Run when the upstream has proved
	// to have another history, before the list that follows. It may be nil.
	Diverged func()
}

// A Known is a version of an object that the sink has received.
type Known struct {
	Key     kube.Key
	UID     string
	RV      uint64
	Deleted bool // RV is that of the deletion
}

// A continuityCheck finds out whether the upstream's history is the one that
// the sink knows.
type continuityCheck struct {
	tail    []Known
	newest  func(context.Context) ([]Known, error)
	missing map[versionID]Known // of the tail, not received so far
	empty   bool                // the collection is empty upstream
}

// A versionID identifies a version of an object in a history.
type versionID struct {
	key kube.Key
	rv  uint64
}

// resume makes Run begin with a watch.
func (r *reflector[O]) resume(from *Resume) {
	r.collection, r.columns, r.afterDelete = from.List, from.List.Columns, from.AfterDelete
	r.state = stateVerify // the upstream may have been restored since
	if from.Newest != nil {
		r.state, r.check = stateProve, &continuityCheck{tail: from.Tail, newest: from.Newest}
	}
}

// sameHistory ends the continuity check.
func (r *reflector[O]) sameHistory() { r.state, r.check = stateWatch, nil }

// replayTail opens a watch that has to send the tail again, and follows it.
func (r *reflector[O]) replayTail(ctx context.Context) error {
	c := r.check
	c.missing = map[versionID]Known{}
	for _, k := range c.tail {
		c.missing[versionID{k.Key, k.RV}] = k
	}
	s, err := r.open(ctx, url.Values{"resourceVersion": {kube.FormatRV(c.tail[0].RV - 1)}})
	if err != nil {
		return err
	}
	defer s.close()
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
	key, uid := r.identify(f.object)
	id := versionID{key, f.rv}
	k, ok := c.missing[id]
	switch {
	case ok && k.UID == uid && k.Deleted == (f.typ == kube.Deleted):
		delete(c.missing, id)
		if len(c.missing) == 0 {
			r.setPhase(Watching)
			r.sink.Flush() // shows the sink that there is a watch
		}
		return false, nil
	case f.typ == kube.Deleted && f.rv == head:
		return true, nil // one of several deletions that share the head's RV
	}
	return false, fmt.Errorf("%w: unknown event %s %s at %d", errDiverged, f.typ, key, f.rv)
}

// compareNewest gets the newest objects and compares their versions with those
// that the sink knows.
func (r *reflector[O]) compareNewest(ctx context.Context) error {
	known, err := r.check.newest(ctx)
	if err != nil {
		return fmt.Errorf("%w: read the newest known objects: %w", errExpired, err)
	}
	head := r.sink.Head()
	same := len(known) == 0 && r.check.empty
	for _, k := range known {
		o, err := r.metadata(ctx, k.Key)
		refused, isRefused := errors.AsType[*RefusedError](err)
		switch {
		case isRefused && refused.Code == http.StatusNotFound: // deleted since, or never there
		case isRefused: // list and watch may be allowed where get is not
		case err != nil:
			return err
		case o.UID == k.UID && o.RV == k.RV:
			same = true
		case o.RV <= head:
			return fmt.Errorf("%w: %s is known at %d, upstream has %d", errDiverged, k.Key, k.RV, o.RV)
		}
	}
	if !same {
		return fmt.Errorf("%w: no object proves the history up to %d", errExpired, head)
	}
	r.sameHistory()
	return nil
}

// metadata gets an object's metadata.
func (r *reflector[O]) metadata(ctx context.Context, key kube.Key) (o *scan.Object, err error) {
	u := *r.opts.URL
	dir, resource := path.Split(u.Path)
	if namespace := key.Namespace(); namespace != "" {
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
