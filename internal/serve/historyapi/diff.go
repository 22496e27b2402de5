// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// A diffPosition is a state of one stream. A diffToken is a continue token: the two
// states of the first page, and the last key of the page before.
type diffPosition struct {
	Epoch int       `json:"epoch,omitempty"`
	RV    uint64    `json:"rv"`
	Time  time.Time `json:"time,omitzero"`
}

type diffToken struct {
	From  diffPosition `json:"from"`
	To    diffPosition `json:"to"`
	After kube.Key     `json:"after"`
}

// A diffSide is one of the two compared states.
type diffSide struct {
	*history.Stream
	rv uint64
	at api.Moment
}

// diff returns the differences between two moments.
func (c *call) diff() (any, error) {
	t, streams, err := c.target()
	if err != nil {
		return nil, err
	}
	if c.query.Has("fields") || c.query.Has("as") || c.query.Has("repeated") {
		return c.diffRows(t, streams)
	}
	d := diffPage{resource: t.Resource}
	if d.page, err = c.page(); err != nil {
		return nil, err
	}
	selection, err := c.selection(t)
	if err != nil {
		return nil, err
	}
	d.match = selection.Match
	after, err := c.sides(&d, streams)
	if err != nil {
		return nil, err
	}
	d.oneHistory = oneHistory(streams, d.from.Stream, d.to.Stream)
	d.out.Resource, d.out.From, d.out.To, d.out.Items = t.Resource.GroupResource(), d.from.at, d.to.at, []api.Difference{}
	if t.Name != "" {
		err = d.one(kube.MakeKey(t.Namespace, t.Name))
	} else {
		err = d.all(selection.Namespace, after)
	}
	return d.out, err
}

// selection reads the selectors.
func (c *call) selection(t request.Target) (request.Selection, error) {
	labelSelector, err := labels.Parse(c.query.Get("labelSelector"))
	if err != nil {
		return request.Selection{}, refuseBad("labelSelector: %v", err)
	}
	fieldSelector, err := fields.ParseSelector(c.query.Get("fieldSelector"))
	if err != nil {
		return request.Selection{}, refuseBad("fieldSelector: %v", err)
	}
	t.Name = "" // one looks up a single object by its key
	selection, ok := request.Select(t, labelSelector, fieldSelector, true, request.BuiltInFields(t.Resource))
	if !ok {
		return selection, refuseBad("fieldSelector: %q is not a field selector of %s", c.query.Get("fieldSelector"), t.Resource.GroupResource())
	}
	return selection, nil
}

// sides finds the two states. If the request continues a page, they are the states of
// that page, and after is its last key.
func (c *call) sides(d *diffPage, streams []*history.Stream) (after kube.Key, err error) {
	if text := c.query.Get("continue"); text != "" {
		var token diffToken
		decoded, err := base64.RawURLEncoding.DecodeString(text)
		if err == nil {
			err = json.Unmarshal(decoded, &token)
		}
		if err != nil || token.From.RV == 0 || token.To.RV == 0 {
			return "", refuseBad("continue is %q: use the member continue of the page before", text)
		}
		if d.from, err = token.From.side(streams); err == nil {
			d.to, err = token.To.side(streams)
		}
		return token.After, err
	}
	var begin, end time.Time
	for _, side := range []struct {
		into             *diffSide
		at               *time.Time
		parameter, usual string
	}{{&d.from, &begin, "from", "1h"}, {&d.to, &end, "to", "now"}} {
		when, err := c.when(side.parameter, side.usual)
		if err != nil {
			return "", err
		}
		st, err := c.locate(d.resource, when)
		if err != nil {
			return "", err
		}
		*side.into = diffSide{st.Stream, st.RV, api.Moment{ResourceVersion: kube.FormatRV(st.RV), Time: st.Since.UTC()}}
		if *side.at = when.At; when.RV != 0 {
			*side.at = st.Since
		}
	}
	if end.Before(begin) {
		begin, end = end, begin
	}
	d.out.Unobserved = c.unobserved([]kube.Resource{d.resource}, begin, end)
	return "", nil
}

// side returns the state at a position of a continue token.
func (p diffPosition) side(streams []*history.Stream) (diffSide, error) {
	for _, st := range streams {
		if st.Epoch() == p.Epoch {
			return diffSide{st, p.RV, api.Moment{ResourceVersion: kube.FormatRV(p.RV), Time: p.Time}}, st.Check(p.RV)
		}
	}
	return diffSide{}, history.ErrBefore
}

func (s diffSide) position() diffPosition { return diffPosition{s.Epoch(), s.rv, s.at.Time} }

// A diffPage is a page of the differences of two states.
type diffPage struct {
	page
	resource kube.Resource
	match    request.Filter
	from, to diffSide
	// oneHistory is set if the same RV of an object is the same version of it on both sides,
	// perhaps in another form.
	oneHistory bool
	out        api.Differences
}

// one compares a single object.
func (d *diffPage) one(key kube.Key) error {
	before, err := d.from.Get(d.ctx, d.from.rv, key)
	if err != nil {
		return err
	}
	after, err := d.to.Get(d.ctx, d.to.rv, key)
	if err != nil || before == nil && after == nil {
		return err
	}
	return d.add(before, after)
}

// all compares all objects with keys after start. Both lists are in key order.
func (d *diffPage) all(namespace string, start kube.Key) error {
	before, stop := iter.Pull2(d.from.List(d.ctx, d.from.rv, namespace, start))
	defer stop()
	after, stop := iter.Pull2(d.to.List(d.ctx, d.to.rv, namespace, start))
	defer stop()
	a, err := pull(before, start)
	if err != nil {
		return err
	}
	b, err := pull(after, start)
	for last := start; err == nil && (a != nil || b != nil); {
		if err := d.ended(); err != nil {
			return err
		}
		if d.full() {
			d.out.Continue = d.token(last)
			return nil
		}
		old, now := a, b
		if old != nil && now != nil && old.Key != now.Key {
			if old.Key < now.Key {
				now = nil
			} else {
				old = nil
			}
		}
		if old != nil {
			last = old.Key
			if a, err = pull(before, start); err != nil {
				return err
			}
		}
		if now != nil {
			last = now.Key
			if b, err = pull(after, start); err != nil {
				return err
			}
		}
		if err := d.add(old, now); err != nil {
			return err
		}
	}
	return err
}

// pull returns the next object whose key is not start, nil at the end.
func pull(next func() (*scan.Object, error, bool), start kube.Key) (*scan.Object, error) {
	o, err, _ := next()
	if o != nil && o.Key == start {
		o, err, _ = next()
	}
	return o, err
}

func (d *diffPage) token(after kube.Key) string {
	text, err := json.Marshal(diffToken{d.from.position(), d.to.position(), after})
	if err != nil {
		panic(err) // numbers, times and a key cannot fail
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// add compares two versions of an object, one of which may be nil.
func (d *diffPage) add(before, after *scan.Object) error {
	was, is := before != nil && d.match.Matches(before), after != nil && d.match.Matches(after)
	if !was && !is {
		return nil
	}
	both := before != nil && after != nil
	if both && (d.oneHistory && before.RV == after.RV && before.UID == after.UID || before.JSON == after.JSON) {
		d.out.Unchanged++
		return nil
	}
	d.compared++
	c, err := d.compare(before, after)
	if err != nil {
		return err
	}
	if c.OnlyNoise && !d.noise && was && is {
		d.out.Folded++
		return nil
	}
	o, of := after, d.to
	if o == nil {
		o, of = before, d.from
	}
	item := api.Difference{
		Type: api.Modified, Path: of.Resource().ObjectPath(o.Key), Kind: o.Kind, Namespace: o.Key.Namespace(), Name: o.Key.Name(),
		Summary: c.Summary, Changes: c.Patch, By: c.By, Noise: c.Noise,
	}
	if c.OnlyNoise {
		item.Summary = []string{"only noise"}
	}
	switch {
	case !was:
		item.Type = api.Added
		if before != nil {
			item.Selection = api.Entered
		}
	case !is:
		item.Type = api.Deleted
		if after != nil {
			item.Selection = api.Left
		}
	}
	item.Recreated = before != nil && after != nil && before.UID != after.UID
	if before != nil {
		item.From = kube.FormatRV(before.RV)
	}
	if after != nil {
		item.To = kube.FormatRV(after.RV)
	}
	if d.objects {
		if before != nil {
			item.Before = json.RawMessage(before.JSON)
		}
		if after != nil {
			item.Object = json.RawMessage(after.JSON)
		}
	}
	d.items++
	d.out.Items = append(d.out.Items, item)
	return nil
}
