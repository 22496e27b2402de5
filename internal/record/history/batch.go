// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/maphash"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/record/history/delta"
)

// maxChain limits how many versions in a row are deltas, and so how many have
// to be read to resolve one.
const maxChain = 31

var seed = maphash.MakeSeed()

// A writeBatch collects one write to a stream. Nothing of it is visible, to the
// writer either, before commit.
type writeBatch struct {
	st        *Stream
	batch     *pebble.Batch
	last      map[kube.Key]lastVersion // rv is 0 after a deletion
	lifetimes map[kube.Key]lifetime
	columns   map[string]uint64
	span      Span
	moved     bool        // span.To was written
	stamp     time.Time   // of the last observation
	era       uint64      // of the last observation
	steps     []ClockStep // in this write
	begins    bool
	gap       *Gap
	heard     bool
	form      *Form

	key, value     []byte
	text, prevText []byte // of the event that is being added
}

// newWriteBatch begins a write and locks out others until close.
func (st *Stream) newWriteBatch() (*writeBatch, error) {
	if err := st.s.acquire(); err != nil {
		return nil, err
	}
	err := st.s.failure()
	if err == nil {
		err = st.s.checkDiskSpace()
	}
	if err != nil {
		st.s.release()
		return nil, err
	}
	st.writeMu.Lock()
	st.mu.Lock()
	defer st.mu.Unlock()
	return &writeBatch{
		st: st, batch: st.s.db.NewBatch(), span: st.span, stamp: st.stamp, era: st.era,
		last: map[kube.Key]lastVersion{}, lifetimes: map[kube.Key]lifetime{}, columns: map[string]uint64{},
	}, nil
}

func (w *writeBatch) close() {
	w.batch.Close()
	w.st.writeMu.Unlock()
	w.st.s.release()
}

// commit writes the batch to disk, then makes it visible (T9).
func (w *writeBatch) commit() error {
	if err := w.st.s.commit(w.batch); err != nil {
		return err
	}
	st := w.st
	for text, id := range w.columns {
		st.columnsIDs[text] = id
	}
	w.remember()
	st.mu.Lock()
	defer st.mu.Unlock()
	for text, id := range w.columns {
		st.columnsByID[id] = text
	}
	st.span.To = w.span.To // Trim may have moved From
	if w.moved {
		st.appended = w.span.To.At
	}
	st.stamp, st.era = w.stamp, w.era
	st.steps = append(st.steps, w.steps...)
	for _, step := range w.steps {
		st.s.opts.Logger.Debug("the clock was set back", "resource", st.resource.String(), "rv", step.RV, "from", step.From, "to", step.To)
	}
	if w.begins {
		st.span.From = w.span.From
	}
	if w.gap != nil {
		if n := len(st.gaps); n > 0 && st.gaps[n-1].From == w.gap.From && st.gaps[n-1].Since.Equal(w.gap.Since) {
			st.gaps = st.gaps[:n-1] // which it continues
		}
		st.gaps = append(st.gaps, *w.gap)
	}
	if w.form != nil {
		st.form = *w.form
	}
	if w.heard {
		st.hear()
	}
	return nil
}

const (
	// lastOverhead estimates the memory of an entry of Stream.last without its key.
	lastOverhead = 96
	// maxTemporaryLast limits the memory of Stream.last in a temporary store.
	maxTemporaryLast = 16 << 20
)

// remember updates the last versions after a commit. In a temporary store it
// forgets half of them beyond a limit: they are read from disk when needed.
func (w *writeBatch) remember() {
	st := w.st
	for key, now := range w.last {
		_, known := st.last[key]
		switch {
		case now.rv == 0 && known:
			delete(st.last, key)
			st.lastBytes -= len(key) + lastOverhead
		case now.rv == 0:
		case known:
			st.last[key] = now
		default:
			if key.Namespace() == "" {
				key = kube.Key(strings.Clone(string(key))) // without a namespace, it is a part of the object's JSON
			}
			st.last[key] = now
			st.lastBytes += len(key) + lastOverhead
		}
	}
	if !st.s.opts.Temporary || st.lastBytes <= maxTemporaryLast {
		return
	}
	for key := range st.last {
		if st.lastBytes <= maxTemporaryLast/2 {
			break
		}
		delete(st.last, key)
		st.lastBytes -= len(key) + lastOverhead
	}
}

// Written frees the memory that only the writer of a stream needs. The stream can
// still be written.
func (st *Stream) Written() {
	st.writeMu.Lock()
	defer st.writeMu.Unlock()
	st.last, st.lastBytes = map[kube.Key]lastVersion{}, 0
}

func (w *writeBatch) setForm(form Form) error {
	value, err := json.Marshal(formRecord{form.ListKind, form.Item.JSON, form.Item.Row, form.Item.Columns, form.Definition})
	if err != nil {
		return err
	}
	w.form = &form
	return w.batch.Set(appendKey(nil, tableForm, w.st.id), value, nil)
}

// addVersion adds the version that an event makes.
func (w *writeBatch) addVersion(e *Event) error {
	o := e.Object
	columns, err := w.columnsID(o.Columns)
	if err != nil {
		return err
	}
	w.text = appendText(w.text[:0], o, columns)
	now, v := lastVersion{rv: o.RV, sum: maphash.Bytes(seed, w.text)}, version{typ: e.Type, inferred: e.Inferred, at: e.At}
	before, prev, err := w.previous(e)
	if err != nil {
		return err
	}
	if prev != nil && before.rv < o.RV && before.chain < maxChain {
		v.delta, v.base, now.chain = true, before.rv, before.chain+1
	}
	if begins := before.rv == 0; begins || e.Type == kube.Deleted {
		if err := w.setLifetime(e, begins); err != nil {
			return err
		}
	}
	if w.value = appendVersion(w.value[:0], v, o.RV); v.delta {
		w.value = delta.Append(w.value, viewOf(prev), viewOf(w.text))
	} else {
		w.value = append(w.value, w.text...)
	}
	w.key = appendVersionKey(w.key[:0], w.st.id, o.Key, o.RV)
	if e.Type == kube.Deleted {
		now = lastVersion{}
	}
	w.last[o.Key] = now
	return w.batch.Set(w.key, w.value, nil)
}

// previous returns the version before an event's, as it is on disk, and its
// text, which is valid until the next call. A delta must apply to the version on
// disk, not to the writer's copy of it. With a nil text, the new version is stored
// whole.
func (w *writeBatch) previous(e *Event) (before lastVersion, text []byte, err error) {
	if e.Type == kube.Added {
		return before, nil, nil
	}
	before, changed := w.last[e.Object.Key]
	known := changed
	if !known {
		before, known = w.st.last[e.Object.Key]
	}
	if known && (before.rv == 0 || before.chain >= maxChain) {
		return before, nil, nil
	}
	// The writer's copy may differ from the one on disk, when a later list
	// printed the object's row differently and that was not recorded. The hash
	// shows it.
	if known && e.Prev != nil && before.rv == e.Prev.RV {
		columns, err := w.columnsID(e.Prev.Columns)
		if err != nil {
			return before, nil, err
		}
		w.prevText = appendText(w.prevText[:0], e.Prev, columns)
		if maphash.Bytes(seed, w.prevText) == before.sum {
			return before, w.prevText, nil
		}
	}
	if changed {
		return before, nil, nil // not on disk yet
	}
	return w.st.newest(e.Object.Key, w.span.To.RV)
}

// newest reads the newest version of a live object at rv.
func (st *Stream) newest(key kube.Key, rv uint64) (before lastVersion, text []byte, err error) {
	var r versionReader
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
	return lastVersion{at, maphash.Bytes(seed, r.text), uint8(len(r.chain))}, r.text, nil
}

// setLifetime records that an object was created or deleted.
func (w *writeBatch) setLifetime(e *Event, begins bool) error {
	key, rv := e.Object.Key, e.Object.RV
	was, ok := w.lifetimes[key]
	if !ok {
		w.key = appendNameKey(w.key[:0], w.st.id, key)
		value, err := w.st.s.get(w.key)
		if ok = value != nil; ok && err == nil {
			was, err = parseLifetime(value)
		}
		if err != nil {
			return err
		}
	}
	if begins {
		was = lifetime{born: rv, earlier: ok}
	}
	if e.Type == kube.Deleted {
		was.died = rv
	}
	w.lifetimes[key] = was
	w.key = appendNameKey(w.key[:0], w.st.id, key)
	return w.batch.Set(w.key, appendLifetime(nil, was), nil)
}

// addLogEntry adds an event to the log.
func (w *writeBatch) addLogEntry(e *Event) error {
	w.key = appendLogKey(w.key[:0], w.st.id, e.Object.RV, e.Object.Key)
	w.value = appendFlags(w.value[:0], version{typ: e.Type, inferred: e.Inferred, at: e.At})
	return w.batch.Set(w.key, w.value, nil)
}

// moveHead moves the head.
func (w *writeBatch) moveHead(to Moment) (err error) {
	if to.At, err = w.observe(to.At, to.RV); err != nil {
		return err
	}
	return w.setHead(to)
}

func (w *writeBatch) setHead(to Moment) error {
	w.span.To, w.moved = to, true
	value := appendMoment(nil, to)
	if w.era > 0 {
		value = binary.BigEndian.AppendUint64(value, w.era)
	}
	if err := w.batch.Set(appendKey(nil, tableHead, w.st.id), value, nil); err != nil {
		return err
	}
	return w.batch.Set(timesKey(w.st.id, w.era, to.At), value[:8], nil)
}

// columnsID returns the ID of columnDefinitions, and assigns one if needed.
func (w *writeBatch) columnsID(text string) (uint64, error) {
	if id, ok := w.st.columnsIDs[text]; ok {
		return id, nil
	}
	if id, ok := w.columns[text]; ok {
		return id, nil
	}
	id := uint64(len(w.st.columnsIDs) + len(w.columns) + 1)
	w.columns[text] = id
	w.key = numberKey(tableColumns, w.st.id, id)
	return id, w.batch.Set(w.key, []byte(text), nil)
}
