// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A pastReader reads the past from a gateway, with a new client for each read.
type pastReader struct {
	http  *http.Client
	base  string
	texts *texts
}

// A form is the form in which a past list is requested.
type form string

const (
	whole   form = "whole"
	byPage  form = "pages"
	asTable form = "table"
)

const tableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// client returns a client of the gateway, or of its past below when.
func (p *pastReader) client(when, name string, res resource, sel selector) *client {
	base := p.base
	if when != "" {
		base += "/at/" + when
	}
	return &client{
		name: name, http: p.http, base: base, resource: res.name, path: res.path, sel: sel, texts: p.texts,
		start: "past", bookmarks: true, timeout: 300 * time.Second,
	}
}

// list reads a list of the past: below /at/rv:N or /at/time, or at exactly its RV
// on the ordinary path.
func (p *pastReader) list(ctx context.Context, res resource, sel selector, r *pastRead, f form) error {
	when := ""
	q := url.Values{}
	switch {
	case r.Asked == 0:
		when = r.When.UTC().Format(time.RFC3339Nano)
	case r.At:
		when = "rv:" + strconv.FormatUint(r.Asked, 10)
	default:
		q.Set("resourceVersion", strconv.FormatUint(r.Asked, 10))
		q.Set("resourceVersionMatch", "Exact")
	}
	c := p.client(when, "past-"+string(f), res, sel)
	r.exchange = c.begin("past", 0)
	if f == byPage {
		q.Set("limit", "7")
	}
	for {
		next, err := "", error(nil)
		if f == asTable {
			next, err = c.tablePage(ctx, r, q)
		} else {
			next, err = c.page(ctx, r.exchange, q)
		}
		r.Path = c.base[len(p.base):] + r.Path
		if err != nil {
			r.End = err.Error()
			if r.Code == http.StatusOK || r.Code == 0 {
				return fmt.Errorf("%s: %w", r.Path, err) // no response to judge
			}
			return nil
		}
		if next == "" {
			return nil
		}
		q.Set("continue", next)
		q.Del("resourceVersion")
		q.Del("resourceVersionMatch")
	}
}

// tablePage reads a list as a Table: its objects and its cells.
func (c *client) tablePage(ctx context.Context, r *pastRead, q url.Values) (next string, err error) {
	q.Set("includeObject", "Object")
	t, err := c.table(ctx, r.exchange, q)
	if err != nil {
		return "", err
	}
	for _, row := range t.Rows {
		e, err := c.event("ADDED", row.Object)
		if err != nil {
			return "", err
		}
		r.Items = append(r.Items, e)
	}
	r.Cells = append(r.Cells, t.steady()...)
	return t.Metadata.Continue, nil
}

// A table holds the compared fields of a metav1.Table.
type table struct {
	Kind              string
	Metadata          struct{ ResourceVersion, Continue string }
	ColumnDefinitions []struct{ Name string }
	Rows              []struct {
		Cells  []any
		Object json.RawMessage
	}
}

// steady returns the cells without those that depend on the age.
func (t *table) steady() [][]any {
	out := [][]any{} // not nil, even without rows
	for _, row := range t.Rows {
		var cells []any
		for i, cell := range row.Cells {
			if i < len(t.ColumnDefinitions) && !slices.Contains([]string{"Age", "Restarts"}, t.ColumnDefinitions[i].Name) {
				cells = append(cells, cell)
			}
		}
		out = append(out, cells)
	}
	return out
}

func (c *client) table(ctx context.Context, x *exchange, q url.Values) (*table, error) {
	c = &client{http: &http.Client{Transport: accepting{c.http.Transport}}, base: c.base, path: c.path, sel: c.sel, name: c.name, texts: c.texts}
	resp, err := c.get(ctx, x, q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var t table
	if err := json.Unmarshal(body, &t); err != nil {
		return nil, err
	}
	if t.Kind != "Table" {
		return nil, fmt.Errorf("a %s in place of a Table", t.Kind)
	}
	x.RV, err = strconv.ParseUint(t.Metadata.ResourceVersion, 10, 64)
	return &t, err
}

// accepting requests Tables.
type accepting struct{ http.RoundTripper }

func (a accepting) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Accept", tableAccept)
	return a.RoundTripper.RoundTrip(req)
}

// get reads a single object of the past.
func (p *pastReader) get(ctx context.Context, res resource, r *pastRead) error {
	namespace, name, _ := strings.Cut(r.Name, "/")
	i := strings.LastIndexByte(res.path, '/')
	one := res
	one.path = res.path[:i] + "/namespaces/" + namespace + res.path[i:] + "/" + name
	c := p.client("rv:"+strconv.FormatUint(r.Asked, 10), "past-get", one, newSelector("", "", ""))
	r.exchange = c.begin("past", 0)
	resp, err := c.get(ctx, r.exchange, url.Values{})
	r.Path = c.base[len(p.base):] + r.Path
	if err != nil {
		if r.End = err.Error(); r.Code == 0 {
			return err
		}
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	e, err := c.event("ADDED", []byte(strings.TrimSpace(string(body))))
	r.Items, r.RV = []event{e}, r.Asked // an object does not carry the RV of its state
	return err
}

// index gets the recorded spans from the gateway.
func (p *pastReader) index(ctx context.Context) (map[string]known, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/watchkeeper/v1/history", nil)
	if err != nil {
		return nil, err
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	type moment struct {
		ResourceVersion uint64 `json:",string"`
		Time            time.Time
	}
	type span struct{ From, To moment }
	var answer struct {
		Resources []struct {
			Resource string
			Epochs   []struct {
				Span span
				Gaps []span
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	all := map[string]known{}
	for _, r := range answer.Resources {
		if len(r.Epochs) != 1 {
			return nil, fmt.Errorf("%s: %d epochs, want 1: the RVs never decreased", r.Resource, len(r.Epochs))
		}
		e := r.Epochs[0]
		k := known{From: e.Span.From.ResourceVersion, To: e.Span.To.ResourceVersion, Since: e.Span.From.Time}
		for _, g := range slices.Backward(e.Gaps) { // the newest is listed first
			of := pastGap{gap{g.From.ResourceVersion, g.To.ResourceVersion}, g.From.Time, g.To.Time}
			if of.From == of.To {
				k.Late = append(k.Late, of)
			} else {
				k.Gaps = append(k.Gaps, of)
			}
		}
		name, _, _ := strings.Cut(r.Resource, ".")
		all[name] = k
	}
	return all, nil
}
