// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
)

// maxRowEvents bounds the entries of the log that are read for a difference as rows: a
// list is faster than a difference of so many. Tests change it.
var maxRowEvents = 500_000

// diffRows returns the difference between two moments as rows: the state at the second
// moment of each object that changed between them.
func (c *call) diffRows(t request.Target, streams []*history.Stream) (any, error) {
	for _, parameter := range []string{"labelSelector", "fieldSelector", "limit", "continue", "noise", "objects"} {
		if c.query.Has(parameter) {
			return nil, refuseBad("%s: a difference as rows has none: its parameters are from, to, fields and as", parameter)
		}
	}
	if t.Name != "" {
		return nil, refuseBad("as: only a list has rows")
	}
	paths, err := request.ParseProjection(c.query, "rows")
	if err == nil && paths.Columns() == nil {
		err = errors.New("fields: add as=rows, the form of a difference with fields")
	}
	changes, repeatedErr := request.ParseRepeated(c.query)
	if err = cmp.Or(err, repeatedErr); err != nil {
		return nil, refuseBad("%v", err)
	}
	d := diffPage{resource: t.Resource}
	if _, err := c.sides(&d, streams); err != nil {
		return nil, err
	}
	if d.from.Epoch() != d.to.Epoch() {
		return nil, refuseBad("from and to are in different epochs of the history, which have no difference: list the state at to")
	}
	release, _, err := c.Past.AcquireList(c.r.Context(), 0) // it may have as many objects as a list
	if err != nil {
		return nil, err
	}
	rows := &rowDifference{from: d.from.at, to: d.to.at, columns: paths.Columns(), changes: changes, release: release}
	if err := rows.read(c, &d, t.Namespace, paths); err != nil {
		release()
		return nil, err
	}
	return rows, nil
}

// A rowDifference is the answer.
type rowDifference struct {
	from, to api.Moment
	columns  []string
	changes  bool      // the rows are what differs from the row before
	parts    []rowPart // in the order of their keys
	release  func()
}

// A rowPart has the rows and the deleted objects of a part of the keys, separated by
// commas.
type rowPart struct {
	rows, deleted []byte
	row           []byte // the last one, before changes
	changes       scan.RowChanges
}

func (d *rowDifference) read(c *call, between *diffPage, namespace string, paths *scan.Paths) error {
	ctx, at := c.r.Context(), between.to
	keys, err := at.Changed(ctx, between.from.rv, at.rv, namespace, maxRowEvents)
	if errors.Is(err, history.ErrTooMany) {
		return refuseBad("%v: list the state at to", err)
	}
	if err != nil {
		return err
	}
	d.parts = make([]rowPart, at.Parts())
	return at.Texts(ctx, at.rv, keys, func(part int, key kube.Key, text string) {
		p := &d.parts[part]
		if text != "" {
			if d.changes {
				p.row = paths.AppendRow(p.row[:0], text)
				p.rows = p.changes.Append(p.rows, p.row)
			} else {
				p.rows = paths.AppendRow(p.rows, text)
			}
			p.rows = append(p.rows, ',')
			return
		}
		name, err := json.Marshal([]string{key.Namespace(), key.Name()})
		if err != nil {
			panic(err) // texts cannot fail
		}
		p.deleted = append(append(p.deleted, name...), ',')
	})
}

// ServeHTTP implements http.Handler.
func (d *rowDifference) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer d.release()
	repeated := ""
	if d.changes {
		repeated = "omit"
	}
	head, err := json.Marshal(struct {
		Kind       string     `json:"kind"`
		APIVersion string     `json:"apiVersion"`
		From       api.Moment `json:"from"`
		To         api.Moment `json:"to"`
		Columns    []string   `json:"columns"`
		Repeated   string     `json:"repeated,omitempty"`
	}{"RowDifference", "watchkeeper/v1", d.from, d.to, d.columns, repeated})
	if err != nil {
		panic(err) // texts and times cannot fail
	}
	body := []string{string(head[:len(head)-1]), `,"rows":[`}
	body = append(body, join(d.parts, func(p *rowPart) []byte { return p.rows })...)
	body = append(body, `],"deleted":[`)
	body = append(body, join(d.parts, func(p *rowPart) []byte { return p.deleted })...)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	httpstream.WriteBody(w, r, wire.NewBody(append(body, "]}\n")...), true, nil)
}

// join returns a field of the parts, without the last comma.
func join(parts []rowPart, field func(*rowPart) []byte) (texts []string) {
	for i := range parts {
		if text := field(&parts[i]); len(text) > 0 {
			texts = append(texts, string(text))
		}
	}
	if n := len(texts); n > 0 {
		texts[n-1] = strings.TrimSuffix(texts[n-1], ",")
	}
	return texts
}
