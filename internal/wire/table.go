// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A columnSet is what is known of the columns of a Table.
type columnSet struct {
	text   string  // the columnDefinitions
	clocks []clock // by column; nil for one that does not depend on the time
	noRows string  // how an empty list is written
	err    error   // the columns are not understood
}

// A column is one of the columnDefinitions.
type column struct {
	Name, Type, Format, Description string
	Priority                        int32
}

// columnsOf reads columnDefinitions, mostly from memory.
func (e *Encoder) columnsOf(text string) (*columnSet, error) {
	set := e.columns.Load()
	if set == nil || set.text != text {
		set = &columnSet{text: text}
		var columns []column
		if set.err = json.Unmarshal([]byte(text), &columns); set.err != nil {
			set.err = fmt.Errorf("%w: %w", ErrForm, set.err) // "" too: no columns are known
		}
		for _, c := range columns {
			set.clocks = append(set.clocks, e.clockOf(c))
		}
		if set.noRows = "[]"; len(columns) == 2 && columns[1].Name == "Created At" {
			set.noRows = "null" // those of a kind without columns of its own
		}
		e.columns.Store(set)
	}
	return set, set.err
}

// listTable appends a Table of the items.
func (e *Encoder) listTable(b *Body, f Form, h ListHead, items []*scan.Object) error {
	return e.table(b, f, marshal(h.meta()), h.Columns, h.Columns, items)
}

// repeatsColumns reports whether every event of a watch tells the columns: the
// aggregation layer prints them whether they are wanted or not.
func repeatsColumns(r kube.Resource) bool {
	return r.GroupResource() == "apiservices.apiregistration.k8s.io"
}

// SortsRows reports whether Tables of the resource have their rows in an order
// of their own: FlowSchemas are printed by precedence.
func SortsRows(r kube.Resource) bool {
	return r.GroupResource() == "flowschemas.flowcontrol.apiserver.k8s.io"
}

// tableEvent appends the Table of one event. printed are the columnDefinitions
// as they are to be written, which may be null.
func (e *Encoder) tableEvent(b *Body, f Form, printed string, o *scan.Object) error {
	return e.table(b, f, `{"resourceVersion":"`+kube.FormatRV(o.RV)+`"}`, printed, o.Columns, []*scan.Object{o})
}

func (e *Encoder) table(b *Body, f Form, meta, printed, columns string, items []*scan.Object) error {
	set, err := e.columnsOf(columns)
	if err != nil {
		return err
	}
	b.add(`{"kind":"Table","apiVersion":"meta.k8s.io/`+f.Version+`","metadata":`, meta,
		`,"columnDefinitions":`, printed, `,"rows":`)
	if len(items) == 0 {
		b.add(set.noRows, "}")
		return nil
	}
	b.add("[")
	now := time.Now()
	if e.Now != nil {
		now = e.Now()
	}
	err = encodeAll(b, items, func(b *Body, at int, run []*scan.Object) error {
		r := rowPrinter{e: e, f: f, set: set, now: now}
		for i, o := range run {
			if at+i > 0 {
				b.add(",")
			}
			if err := r.row(b, o); err != nil {
				return err
			}
		}
		return nil
	})
	b.add("]}")
	return err
}

// A rowPrinter prints rows at one time.
type rowPrinter struct {
	e     *Encoder
	f     Form
	set   *columnSet
	now   time.Time
	cells []string
}

// row appends the row of an object: the cells as the API server printed them,
// and those that depend on the time as they are now.
func (r *rowPrinter) row(b *Body, o *scan.Object) error {
	if o.Columns != "" && o.Columns != r.set.text {
		return fmt.Errorf("%w: %s", ErrColumns, o.Key)
	}
	cells, rest, err := o.Cells(r.cells[:0])
	r.cells = cells
	if err != nil || len(cells) != len(r.set.clocks) {
		return fmt.Errorf("%w: it is not known how %s is printed", ErrForm, o.Key)
	}
	text := make([]byte, 0, len(o.Row)+16)
	text = append(text, `{"cells":[`...)
	for i, cell := range cells {
		if i > 0 {
			text = append(text, ',')
		}
		if clock := r.set.clocks[i]; clock != nil {
			if cell, err = clock(o, cell, r.now); err != nil {
				return err
			}
		}
		text = append(text, cell...)
	}
	text = append(text, ']')
	text = append(text, rest...)
	b.add(string(text), `,"object":`)
	include := r.f.Include
	if o.InitialEventsEnd() && include == IncludeNone {
		include = IncludeMetadata // which bookmark it is must be told
	}
	switch include {
	case IncludeObject:
		b.add(o.JSON)
	case IncludeNone:
		b.add("null")
	default:
		meta, err := r.e.metadataJSON(o)
		if err != nil {
			return err
		}
		b.add(partialHead[r.f.Version], meta, "}")
	}
	b.add("}")
	return nil
}
