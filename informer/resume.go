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

// A Resume is what a reflector knew that brought a sink to its head, for one that
// goes on from there.
//
// That the upstream's RV is not below the head does not show that its history is
// the one known: an etcd that was restored from a backup counts on from a lower
// RV, and may have come past the head with other events. So the first watch
// begins before the last events that are known, and has to bring them again:
//
//	known       ──── a@12 ── b@15 ──── head 20
//	upstream    ──── a@12 ── b@15 ─────────────── c@23    goes on
//	restored    ─ backup 10 ─── a@14 ──────────── c@23    is listed
//
// Where the upstream does not have these events any more, or none are known, some
// objects have to be there as they are known.
type Resume struct {
	// List is the last list, or one like it: its kind, form and columns count.
	List *scan.List
	// AfterDelete tells that the last event was a deletion at the head. Others
	// may follow that share its RV.
	AfterDelete bool
	// Tail are the last events up to the head, in order; from the first one on
	// there were no others. It may be empty.
	Tail []Known
	// Newest returns some live objects as of the head, best those with the
	// highest RVs; none if there are none. It is called when Tail does not help.
	// Nil means that the upstream's RV is proof enough.
	Newest func(context.Context) ([]Known, error)
	// Diverged is called before the list that follows when the upstream's history
	// has turned out to be another one. Nil calls nothing.
	Diverged func()
}

// A Known is a version of an object that is known.
type Known struct {
	Key     kube.Key
	UID     string
	RV      uint64
	Deleted bool // at RV
}

// A doubt is what a reflector that resumes is not sure of yet: whether the
// upstream's history is the one known.
type doubt struct {
	tail    []Known
	newest  func(context.Context) ([]Known, error)
	missing map[place]Known // of the tail, what the stream has not brought yet
}

// A place is where a version is in the history.
type place struct {
	key kube.Key
	rv  uint64
}

// resume has Run begin with a watch.
func (r *reflector[O]) resume(from *Resume) {
	r.kind, r.columns, r.afterDelete = from.List, from.List.Columns, from.AfterDelete
	r.suspect = true // who knows what has been since
	if from.Newest != nil {
		r.doubt = &doubt{tail: from.Tail, newest: from.Newest}
	}
}

// watchTail opens a watch that has to bring the tail, and follows it.
func (r *reflector[O]) watchTail(ctx context.Context) error {
	d := r.doubt
	d.missing = map[place]Known{}
	for _, k := range d.tail {
		d.missing[place{k.Key, k.RV}] = k
	}
	s, err := r.open(ctx, url.Values{"resourceVersion": {kube.FormatRV(d.tail[0].RV - 1)}})
	if err != nil {
		return err
	}
	defer s.close()
	return r.follow(ctx, s)
}

// tells compares a frame with what is known. It returns whether it is news.
func (r *reflector[O]) tells(f frame[O]) (news bool, err error) {
	d, head := r.doubt, r.sink.Head()
	if f.rv > head || f.typ == kube.Bookmark && f.rv == head {
		if len(d.missing) > 0 {
			return false, fmt.Errorf("%w: %d of the last events before %d are not there", errDiverged, len(d.missing), head)
		}
		r.doubt = nil
		return true, nil
	}
	if f.typ == kube.Bookmark {
		return false, nil
	}
	key, uid := r.identify(f.object)
	at := place{key, f.rv}
	k, ok := d.missing[at]
	switch {
	case ok && k.UID == uid && k.Deleted == (f.typ == kube.Deleted):
		delete(d.missing, at)
		if len(d.missing) == 0 {
			r.setPhase(Watching)
			r.sink.Flush() // the news that there is a watch
		}
		return false, nil
	case f.typ == kube.Deleted && f.rv == head:
		return true, nil // it shares the RV of one that is known
	}
	return false, fmt.Errorf("%w: %s of %s at %d, which is not known", errDiverged, f.typ, key, f.rv)
}

// compare looks whether objects are there as they are known. page is a list of
// one.
func (r *reflector[O]) compare(ctx context.Context, page *scan.List) error {
	known, err := r.doubt.newest(ctx)
	if err != nil {
		return fmt.Errorf("%w: what was known cannot be told: %w", errExpired, err)
	}
	head := r.sink.Head()
	same := len(known) == 0 && len(page.Items) == 0
	for _, k := range known {
		o, err := r.metadata(ctx, k.Key)
		refused, isRefused := errors.AsType[*RefusedError](err)
		switch {
		case isRefused && refused.Code == http.StatusNotFound: // deleted since, or never there
		case isRefused: // who may list and watch need not be allowed to get
		case err != nil:
			return err
		case o.UID == k.UID && o.RV == k.RV:
			same = true
		case o.RV <= head:
			return fmt.Errorf("%w: %s is known at %d, and is there at %d", errDiverged, k.Key, k.RV, o.RV)
		}
	}
	if !same {
		return fmt.Errorf("%w: nothing shows that it is the one before %d", errExpired, head)
	}
	r.doubt = nil
	return nil
}

// metadata asks for an object's metadata.
func (r *reflector[O]) metadata(ctx context.Context, key kube.Key) (o *scan.Object, err error) {
	u := *r.opts.URL
	dir, resource := path.Split(u.Path)
	if namespace := key.Namespace(); namespace != "" {
		dir += "namespaces/" + namespace + "/"
	}
	u.Path, u.RawPath, u.RawQuery = dir+resource+"/"+key.Name(), "", ""
	err = r.requestOf(ctx, &u, acceptMetadata, func(body io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(body, maxFrame))
		if err == nil {
			o, err = scan.ParseObject(string(text))
		}
		return err
	})
	return o, err
}

const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
