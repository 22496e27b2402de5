// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

const (
	// unwritablePause is how long requests in a form that a resource could not be
	// encoded in are passed through.
	unwritablePause = time.Minute
	// maxForms bounds the resources whose forms are remembered.
	maxForms = 2000
)

// forms holds what is needed to encode the objects of one resource. It is the
// httpstream.Owner of the watches of the resource, and safe for concurrent use.
type forms struct {
	encoder     wire.Encoder
	definitions *upstream.Definitions
	cbor        *upstream.CBOROffer
	remaining   remainingCount
	res         *watchcache.Resource // nil for objects of the past

	mu         sync.Mutex // guards unwritable
	unwritable map[unwritable]time.Time
}

// unwritable is what was not possible: requests in a form, or only watches in it.
type unwritable struct {
	form    wire.Form
	watches bool
}

// encoderAt returns an encoder that prints ages as of a time; zero for now.
func (f *forms) encoderAt(at time.Time) *wire.Encoder {
	if at.IsZero() {
		return &f.encoder
	}
	return f.encoderWith(func() time.Time { return at })
}

// encoderWith returns an encoder with another clock.
func (f *forms) encoderWith(now func() time.Time) *wire.Encoder {
	e := &f.encoder
	return &wire.Encoder{Resource: e.Resource, Cache: e.Cache, DatePath: e.DatePath, Now: now}
}

// isUnwritable reports whether encoding the resource in the form of a request failed
// within the last minute. A watch that ended for that is passed through when the client
// opens it again.
func (f *forms) isUnwritable(form wire.Form, watch bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.unwritable[unwritable{form: form}]
	if watches := f.unwritable[unwritable{form, true}]; watch && watches.After(at) {
		at = watches
	}
	return !at.IsZero() && time.Since(at) < unwritablePause
}

// Unwritable implements httpstream.Owner. Strings that are not UTF-8 are of one object:
// lists without it can be written, and watches would meet it again.
func (f *forms) Unwritable(form wire.Form, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unwritable == nil {
		f.unwritable = map[unwritable]time.Time{}
	}
	f.unwritable[unwritable{form, errors.Is(err, wire.ErrReplaced)}] = time.Now()
}

// openWatch holds the resource until CloseWatch.
func (f *forms) openWatch() {
	if f.res != nil {
		f.res.OpenWatch()
	}
}

// CloseWatch implements httpstream.Owner.
func (f *forms) CloseWatch() {
	if f.res != nil {
		f.res.CloseWatch()
	}
}

// Heard implements httpstream.Owner.
func (f *forms) Heard() time.Time {
	if f.res == nil {
		return time.Now()
	}
	return f.res.Heard()
}

// Oldest implements httpstream.Owner.
func (f *forms) Oldest() uint64 {
	if f.res == nil {
		return 0
	}
	return f.res.Timeline.View().Start
}

// A formsTable has the forms of resources. It is safe for concurrent use.
type formsTable struct {
	mu    sync.Mutex // guards known
	known map[kube.Resource]*forms
}

// of returns the forms of a resource; res is nil for those of the past. A resource
// that is watched again gets new ones.
func (t *formsTable) of(h *reads, id kube.Resource, res *watchcache.Resource) *forms {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.known[id]
	if f != nil && f.res == res {
		return f
	}
	f = &forms{encoder: wire.Encoder{Resource: id, Cache: h.encodings}, cbor: upstream.NewCBOROffer(h.up, id, h.background), res: res}
	if res != nil {
		f.definitions = res.Definitions
	} else {
		f.definitions = upstream.NewDefinitions(h.up, id, h.background)
	}
	if !id.BuiltIn() {
		f.encoder.DatePath = f.definitions.Date
	}
	if h.recording && res != nil {
		f.encoder.Now = h.past.End
	}
	if t.known == nil || len(t.known) >= maxForms {
		t.known = map[kube.Resource]*forms{}
	}
	t.known[id] = f
	return f
}
