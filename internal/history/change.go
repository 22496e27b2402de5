// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// longestChain is how many versions in a row are deltas: what has to be read
// to know the last of them.
const longestChain = 31

var seed = maphash.MakeSeed()

// A change is what a write makes of a stream. Nothing of it shows, to the
// writer either, before it is on disk.
type change struct {
	st      *Stream
	b       *pebble.Batch
	last    map[kube.Key]stored // rv 0: no longer live
	lives   map[kube.Key]life
	columns map[string]uint64
	span    Span
	begins  bool
	gap     *Gap
	form    *Form

	key, value []byte
	now, was   []byte // texts, of the event that is entered
}

// change begins a change, which is to be closed. There is one at a time.
func (st *Stream) change() (*change, error) {
	if err := st.s.use(); err != nil {
		return nil, err
	}
	err := st.s.failure()
	if err == nil {
		err = st.s.room()
	}
	if err != nil {
		st.s.done()
		return nil, err
	}
	st.writing.Lock()
	return &change{
		st: st, b: st.s.db.NewBatch(), span: st.Span(),
		last: map[kube.Key]stored{}, lives: map[kube.Key]life{}, columns: map[string]uint64{},
	}, nil
}

func (c *change) close() {
	c.b.Close()
	c.st.writing.Unlock()
	c.st.s.done()
}

// commit makes the change, on disk first (T9).
func (c *change) commit() error {
	if err := c.st.s.commit(c.b); err != nil {
		return err
	}
	st := c.st
	for text, id := range c.columns {
		st.columns[text] = id
	}
	for key, now := range c.last {
		if now.rv == 0 {
			delete(st.last, key)
		} else if _, ok := st.last[key]; ok {
			st.last[key] = now
		} else {
			st.last[kube.Key(strings.Clone(string(key)))] = now // it is a part of the object's text
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for text, id := range c.columns {
		st.texts[id] = text
	}
	st.span.To = c.span.To // From may have moved
	if c.begins {
		st.span.From = c.span.From
	}
	if c.gap != nil {
		st.gaps = append(slices.Clone(st.gaps), *c.gap)
	}
	if c.form != nil {
		st.form = *c.form
	}
	return nil
}

func (c *change) setForm(form Form) error {
	value, err := json.Marshal(formRecord{form.ListKind, form.Item.JSON, form.Item.Row, form.Item.Columns, form.Definition})
	if err != nil {
		return err
	}
	c.form = &form
	return c.b.Set(appendKey(nil, tableForm, c.st.id), value, nil)
}

// version enters an event's version.
func (c *change) version(e *Event) error {
	o := e.Object
	columns, err := c.column(o.Columns)
	if err != nil {
		return err
	}
	c.now = appendText(c.now[:0], o, columns)
	now, v := stored{rv: o.RV, sum: maphash.Bytes(seed, c.now)}, version{typ: e.Type, inferred: e.Inferred, at: e.At}
	before, prev, err := c.before(e)
	if err != nil {
		return err
	}
	if prev != nil && before.rv < o.RV && before.chain < longestChain {
		v.delta, v.base, now.chain = true, before.rv, before.chain+1
	}
	if begins := before.rv == 0; begins || e.Type == kube.Deleted {
		if err := c.life(e, begins); err != nil {
			return err
		}
	}
	if c.value = appendVersion(c.value[:0], v, o.RV); v.delta {
		c.value = appendDelta(c.value, viewOf(prev), viewOf(c.now))
	} else {
		c.value = append(c.value, c.now...)
	}
	c.key = appendVersionKey(c.key[:0], c.st.id, o.Key, o.RV)
	if e.Type == kube.Deleted {
		now = stored{}
	}
	c.last[o.Key] = now
	return c.b.Set(c.key, c.value, nil)
}

// before returns what is on disk of the version before an event's, and its
// text, for as long as the next is not asked for: a delta is made of that, not of
// what the writer believes to be there. Nil means that there is none, or that it
// does not matter what it is.
func (c *change) before(e *Event) (before stored, text []byte, err error) {
	if e.Type == kube.Added {
		return before, nil, nil
	}
	before, changed := c.last[e.Object.Key]
	known := changed
	if !known {
		before, known = c.st.last[e.Object.Key]
	}
	if known && (before.rv == 0 || before.chain >= longestChain) {
		return before, nil, nil
	}
	// That the writer's version is not the one on disk shows in its sum: when a
	// list printed the object anew, and it was not recorded.
	if known && e.Prev != nil && before.rv == e.Prev.RV {
		columns, err := c.column(e.Prev.Columns)
		if err != nil {
			return before, nil, err
		}
		c.was = appendText(c.was[:0], e.Prev, columns)
		if maphash.Bytes(seed, c.was) == before.sum {
			return before, c.was, nil
		}
	}
	if changed {
		return before, nil, nil // it is not on disk yet
	}
	return c.st.newest(e.Object.Key, c.span.To.RV)
}

// newest reads the version of a live object that is newest at rv.
func (st *Stream) newest(key kube.Key, rv uint64) (before stored, text []byte, err error) {
	var r reader
	if err := r.open(st); err != nil {
		return before, nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if ok, err := r.seek(key, rv); !ok {
		return before, nil, err
	}
	v, at, err := r.resolve()
	if err != nil || v.typ == kube.Deleted {
		return before, nil, err
	}
	return stored{at, maphash.Bytes(seed, r.text), uint8(len(r.chain))}, r.text, nil
}

// life enters that an object begins or ends to live.
func (c *change) life(e *Event, begins bool) error {
	key, rv := e.Object.Key, e.Object.RV
	was, ok := c.lives[key]
	if !ok {
		c.key = appendNameKey(c.key[:0], c.st.id, key)
		value, err := c.st.s.get(c.key)
		if ok = value != nil; ok && err == nil {
			was, err = parseLife(value)
		}
		if err != nil {
			return err
		}
	}
	if begins {
		was = life{born: rv, earlier: ok}
	}
	if e.Type == kube.Deleted {
		was.died = rv
	}
	c.lives[key] = was
	c.key = appendNameKey(c.key[:0], c.st.id, key)
	return c.b.Set(c.key, appendLife(nil, was), nil)
}

// log enters an event into the log.
func (c *change) log(e *Event) error {
	c.key = appendLogKey(c.key[:0], c.st.id, e.Object.RV, e.Object.Key)
	c.value = appendFlags(c.value[:0], version{typ: e.Type, inferred: e.Inferred, at: e.At})
	return c.b.Set(c.key, c.value, nil)
}

// moveHead enters a new head. Its time does not go back, should the clock.
func (c *change) moveHead(to Moment) error {
	if to.At = to.At.Truncate(time.Millisecond); to.At.Before(c.span.To.At) {
		to.At = c.span.To.At
	}
	c.span.To = to
	value := appendMoment(nil, to)
	if err := c.b.Set(appendKey(nil, tableHead, c.st.id), value, nil); err != nil {
		return err
	}
	return c.b.Set(numberKey(tableTimes, c.st.id, uint64(to.At.UnixMilli())), value[:8], nil)
}

// column returns the number of columnDefinitions.
func (c *change) column(text string) (uint64, error) {
	if id, ok := c.st.columns[text]; ok {
		return id, nil
	}
	if id, ok := c.columns[text]; ok {
		return id, nil
	}
	id := uint64(len(c.st.columns) + len(c.columns) + 1)
	c.columns[text] = id
	c.key = numberKey(tableColumns, c.st.id, id)
	return id, c.b.Set(c.key, []byte(text), nil)
}

// parseTimes reads an entry of the times.
func parseTimes(key, value []byte) (Moment, error) {
	if len(key) != prefixLen+8 || len(value) != 8 {
		return Moment{}, corrupt("%q is no time", key)
	}
	return Moment{binary.BigEndian.Uint64(value), parseTime(key[prefixLen:])}, nil
}
