// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A columnSet describes the columns of a Table.
type columnSet struct {
	text   string  // the columnDefinitions
	clocks []clock // by column; nil for one that does not depend on the time
	noRows string  // the rows of an empty list
	err    error   // text is not valid
}

// A column is one of the columnDefinitions.
type column struct {
	Name, Type, Format, Description string
	Priority                        int32
}

// columnsOf parses columnDefinitions; it keeps those parsed last.
func (e *Encoder) columnsOf(text string) (*columnSet, error) {
	set := e.columns.Load()
	if set == nil || set.text != text {
		set = &columnSet{text: text}
		var columns []column
		if set.err = json.Unmarshal([]byte(text), &columns); set.err != nil {
			set.err = fmt.Errorf("%w: %w", ErrForm, set.err) // also for "", unknown columns
		}
		for _, c := range columns {
			set.clocks = append(set.clocks, e.clockOf(c))
		}
		if set.noRows = "[]"; len(columns) == 2 && columns[1].Name == "Created At" {
			set.noRows = "null" // of a type without its own columns
		}
		e.columns.Store(set)
	}
	return set, set.err
}

// listTable appends a Table of the items.
func (e *Encoder) listTable(b *Body, f Form, h ListHead, items []*scan.Object) error {
	return e.table(b, f, marshal(h.meta()), h.Columns, h.Columns, items)
}

// repeatsColumns reports whether every event of a watch has the columnDefinitions,
// as those of the aggregation layer have.
func repeatsColumns(r kube.Resource) bool {
	return r.GroupResource() == "apiservices.apiregistration.k8s.io"
}

// SortsRows reports whether the API server sorts the rows of the resource's Tables:
// FlowSchemas are sorted by precedence.
func SortsRows(r kube.Resource) bool {
	return r.GroupResource() == "flowschemas.flowcontrol.apiserver.k8s.io"
}

// markDefault returns the items of a list with the row of the default StorageClass marked.
// Since 1.37, the API server marks one, the newest of those that are annotated as the default,
// and only in a list, so that the row of an object has no mark; up to 1.36, each row has its own.
// See printStorageClassList in pkg/printers/internalversion of Kubernetes.
func (e *Encoder) markDefault(items []*scan.Object) ([]*scan.Object, error) {
	if e.Resource.GroupResource() != "storageclasses.storage.k8s.io" {
		return items, nil
	}
	chosen, newest := -1, time.Time{}
	for i, o := range items {
		if !strings.Contains(o.Annotations(), `"storageclass.kubernetes.io/is-default-class":"true"`) &&
			!strings.Contains(o.Annotations(), `"storageclass.beta.kubernetes.io/is-default-class":"true"`) {
			continue
		}
		meta, err := e.metadata(o)
		if err != nil {
			return nil, err
		}
		// The items are in the order of their names, the first of which counts.
		if created := meta.CreationTimestamp.Time; chosen < 0 || created.After(newest) {
			chosen, newest = i, created
		}
	}
	if chosen < 0 {
		return items, nil
	}
	o := items[chosen]
	if rest, ok := strings.CutPrefix(o.Row, `"cells":["`+o.Key.Name()+`"`); ok {
		items = slices.Clone(items)
		items[chosen] = o.WithRow(`"cells":["`+o.Key.Name()+` (default)"`+rest, o.Columns)
	}
	return items, nil
}

// tableEvent appends the Table of one event. printed are the columnDefinitions to
// write, which may be null.
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

// A rowPrinter writes rows as of one time.
type rowPrinter struct {
	e     *Encoder
	f     Form
	set   *columnSet
	now   time.Time
	cells []string
}

// row appends the row of an object. Cells that depend on the time are as of now, the
// others as the API server printed them.
func (r *rowPrinter) row(b *Body, o *scan.Object) error {
	if o.Columns != "" && o.Columns != r.set.text {
		return fmt.Errorf("%w: %s", ErrColumns, o.Key)
	}
	cells, rest, err := o.Cells(r.cells[:0])
	r.cells = cells
	if err != nil || len(cells) != len(r.set.clocks) {
		return fmt.Errorf("%w: the row of %s is not known", ErrForm, o.Key)
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
		include = IncludeMetadata // an annotation marks the bookmark
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
