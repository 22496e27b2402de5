// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// errBegun and errNotBegun are mistakes of a writer.
var (
	errBegun    = errors.New("history: the stream has begun")
	errNotBegun = errors.New("history: the stream has not begun")
)

// Begin records the first list of a stream: what everything after it builds
// on. The objects must not come from the same store.
func (st *Stream) Begin(form Form, objects iter.Seq[*scan.Object], rv uint64, at time.Time) error {
	c, err := st.change()
	if err != nil {
		return err
	}
	defer c.close()
	if c.span.To.RV != 0 {
		return errBegun
	}
	for _, table := range []byte{tableVersions, tableNames} { // of a Begin that did not come to its end
		if err := c.b.DeleteRange(appendKey(nil, table, st.id), after(appendKey(nil, table, st.id)), nil); err != nil {
			return err
		}
	}
	for o := range objects {
		if err := c.version(&Event{Type: kube.Added, Object: o, At: at}); err != nil {
			return err
		}
		if c.b.Len() < beginBatch {
			continue
		}
		// A part, of which nothing shows before there is a head.
		if err := st.s.commit(c.b); err != nil {
			return err
		}
		if err := c.b.Close(); err != nil {
			return err
		}
		c.b = st.s.db.NewBatch()
	}
	if err := c.setForm(form); err != nil {
		return err
	}
	c.begins = true
	c.span.From = Moment{rv, at.Truncate(time.Millisecond)}
	if err := c.b.Set(appendKey(nil, tableRetained, st.id), appendMoment(nil, c.span.From), nil); err != nil {
		return err
	}
	if err := c.moveHead(Moment{rv, at}); err != nil {
		return err
	}
	return c.commit()
}

// beginBatch is how many bytes of a first list are written at a time.
const beginBatch = 8 << 20

// Append records events, in the order of their RVs: those above the head up to
// rv, or further ones at the head, as when several objects were deleted at one RV.
// With no events only the head moves. When it returns nil, they are on disk
// (T9); when it does not, nothing has changed.
func (st *Stream) Append(events []Event, rv uint64, at time.Time) error {
	return st.append(events, rv, at, false)
}

// AppendGap records that of what happened between the head and rv only the
// outcome is known: the events, all inferred.
func (st *Stream) AppendGap(events []Event, rv uint64, at time.Time) error {
	return st.append(events, rv, at, true)
}

func (st *Stream) append(events []Event, rv uint64, at time.Time, gap bool) error {
	c, err := st.change()
	if err != nil {
		return err
	}
	defer c.close()
	head := c.span.To
	if head.RV == 0 {
		return errNotBegun
	}
	if rv < head.RV {
		return fmt.Errorf("history: an append up to %d, the head is %d", rv, head.RV)
	}
	for i := range events {
		e := &events[i]
		if e.Object.RV < head.RV || e.Object.RV > rv {
			return fmt.Errorf("history: an event at %d in an append from %d to %d", e.Object.RV, head.RV, rv)
		}
		if err := c.version(e); err != nil {
			return err
		}
		if err := c.log(e); err != nil {
			return err
		}
	}
	if gap && rv > head.RV {
		c.gap = &Gap{From: head.RV, To: rv, Since: head.At, Until: at}
		if err := c.b.Set(numberKey(tableGaps, st.id, head.RV), appendGap(nil, *c.gap), nil); err != nil {
			return err
		}
	}
	if err := c.moveHead(Moment{rv, at}); err != nil {
		return err
	}
	return c.commit()
}

// SetForm records what answers look like from now on where there is no object.
func (st *Stream) SetForm(form Form) error {
	c, err := st.change()
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.setForm(form); err != nil {
		return err
	}
	return c.commit()
}
