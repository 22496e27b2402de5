// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	recording "github.com/watchkeeper/watchkeeper/internal/recorder"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

const (
	// syncTimeout bounds how long a read waits for what was seen before it to be
	// recorded.
	syncTimeout = 5 * time.Second
	// mostReads is how many whole lists of the past are held at a time: unlike
	// those of timelines, they share no objects (T10). Others wait for readWait,
	// and are told to come again in readRetry seconds.
	mostReads = 4
	readWait  = 10 * time.Second
	readRetry = 5
	// smallRead is up to which limit a list is not counted in that.
	smallRead = 1000
)

// An archive is what is recorded of the cluster: a recorder's.
type archive interface {
	// Store returns the store that has it; nil while nothing is recorded.
	Store() *history.Store
	// Sync returns nil when what the gateway had seen of the resource at the call
	// is in the store.
	Sync(ctx context.Context, r kube.Resource) error
	// Status tells how recording does; false if nothing is to be recorded.
	Status() (recording.Status, bool)
	// Withholds reports whether what was recorded of a resource is not to be told.
	Withholds(r kube.Resource) bool
}

// A stillArchive is one to which nothing is added.
type stillArchive struct{ store *history.Store }

func (h stillArchive) Store() *history.Store                     { return h.store }
func (h stillArchive) Sync(context.Context, kube.Resource) error { return nil }
func (h stillArchive) Withholds(kube.Resource) bool              { return false }

func (h stillArchive) Status() (recording.Status, bool) {
	return recording.Status{Resources: len(h.store.Resources()), Usage: h.store.Usage()}, true
}

// past reads what is recorded. A nil one has nothing.
type past struct {
	cache   *cache
	history archive

	mu    sync.Mutex // guards known
	known map[kube.Resource]*resource
}

func newPast(c *cache, h archive) *past {
	return &past{cache: c, history: h, known: map[kube.Resource]*resource{}}
}

// store returns what has all that is recorded, nil for nothing.
func (p *past) store() *history.Store {
	if p == nil {
		return nil
	}
	return p.history.Store()
}

// end returns when the last of all that is recorded was so.
func (p *past) end() (end time.Time) {
	s := p.store()
	for _, id := range s.Resources() {
		if at := p.newest(id).Head().At; at.After(end) {
			end = at
		}
	}
	return end
}

// streams returns what is recorded of a resource and not withheld, the oldest
// epoch first.
func (p *past) streams(id kube.Resource) []*history.Stream {
	s := p.store()
	if s == nil || p.history.Withholds(id) {
		return nil
	}
	return s.Streams(id)
}

// newest returns the history that the timeline of a resource continues, nil if it
// is not recorded.
func (p *past) newest(id kube.Resource) *history.Stream {
	if all := p.streams(id); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// sync waits until what was seen of the resource is recorded.
func (p *past) sync(ctx context.Context, id kube.Resource) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	return p.history.Sync(ctx, id)
}

// holding returns the newest history of a resource if it has the state at an RV:
// else nil, and why not. One that is not recorded has no reason.
func (p *past) holding(ctx context.Context, id kube.Resource, rv uint64) (*history.Stream, error) {
	st := p.newest(id)
	if st == nil {
		return nil, nil
	}
	err := st.Check(rv)
	if errors.Is(err, history.ErrFuture) && p.sync(ctx, id) == nil {
		if st = p.newest(id); st == nil {
			return nil, nil
		}
		err = st.Check(rv)
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// resource returns what it takes to write objects of the past: a resource that is
// never watched. What is recorded may be watched no more, or exist no more.
func (p *past) resource(st *history.Stream) *resource {
	id := st.Resource()
	p.mu.Lock()
	defer p.mu.Unlock()
	res := p.known[id]
	if res == nil {
		c := p.cache
		info := metav1.APIResource{Name: id.Name, Namespaced: true}
		res = newResource(c.up, id, info, c.log, c.begin, c.window)
		res.encoder.Cache = c.encodings
		p.known[id] = res
	}
	return res
}

// hold waits for a place among the lists that are held, until release. Then the
// client has to read, for others wait.
func (p *past) hold(ctx context.Context, rd *read, limit int64) (release func(), err error) {
	if 0 < limit && limit <= smallRead {
		return func() {}, nil
	}
	rd.awaited = true
	return p.cache.lists.take(ctx)
}

// fields is [resource.fields] for the past. That objects can be selected by their
// names is known without a definition.
func (p *past) fields(ctx context.Context, res *resource) fieldFunc {
	if res.id.BuiltIn() {
		return builtInFields(res.id)
	}
	defined := res.fields(ctx, 0)
	return func(label string) (func(*scan.Object) string, bool) {
		switch label {
		case "metadata.name":
			return nameOf, true
		case "metadata.namespace":
			return func(o *scan.Object) string { return o.Key.Namespace() }, true
		}
		return defined(label)
	}
}

// encoderAt returns an encoder for which it is another time.
func (res *resource) encoderAt(now func() time.Time) *wire.Encoder {
	e := &res.encoder
	return &wire.Encoder{Resource: e.Resource, Cache: e.Cache, DatePath: e.DatePath, Now: now}
}

// refusalFor returns the Status for an error in reading the past.
func (p *past) refusalFor(err error) *metav1.Status {
	switch {
	case errors.Is(err, errBusy):
		return tooBusy()
	case errors.Is(err, history.ErrBefore), errors.Is(err, history.ErrGap):
		return expiredFor(err.Error())
	case errors.Is(err, history.ErrFuture):
		return badRequest(err.Error())
	case errors.Is(err, history.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errDraining):
		return unavailable("the history cannot be read now: "+err.Error(), true)
	}
	p.cache.log.Error("the history cannot be read", "err", err)
	return newStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the history cannot be read: "+err.Error())
}

// tooBusy is what is answered where no place for a list became free.
func tooBusy() *metav1.Status {
	return tooMany(fmt.Sprintf("%d whole lists of the past are being answered: try again, or ask for pages of up to %d", mostReads, smallRead), readRetry)
}

// notRecorded is why nothing is served of a resource.
func (p *past) notRecorded(id kube.Resource) *metav1.Status {
	if p == nil || p.history.Store() == nil {
		return notFound("nothing is recorded here: give watchkeeper a --data-dir to have a past")
	}
	var others []string
	for _, r := range p.history.Store().Resources() {
		if r.GroupResource() == id.GroupResource() {
			others = append(others, r.APIVersion())
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		return notFound(fmt.Sprintf("%s are not recorded as %s, but as %s", id.GroupResource(), id.APIVersion(), strings.Join(others, ", ")))
	}
	flag := "--record=core," + id.GroupResource()
	if id.GroupResource() == "secrets" {
		flag = "--record-secrets"
	}
	return notFound(fmt.Sprintf("%s are not recorded: start watchkeeper with %s to have their past from then on", id.GroupResource(), flag))
}
