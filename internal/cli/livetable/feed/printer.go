// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// Columns says what a table shows of the columns that the API server prints, as kubectl's
// flags do.
type Columns struct {
	Namespace    bool     // -A: the namespace first
	Wide         bool     // -o wide: the columns of lower priority, too
	ShowLabels   bool     // --show-labels
	LabelColumns []string // -L
	// NamePrefix stands before names, as "deployment.apps/" does with several resources.
	NamePrefix string
}

// A Printer makes the rows of a resource. It is for one goroutine.
type Printer struct {
	resource kube.Resource
	columns  Columns
	sortKey  func(*scan.Object) any // nil for the order of keys
	now      func() time.Time       // the time of the objects, for ages

	definitions string // of the columns below
	out         []table.Column
	in          []input // by the server's column
	lead        int     // columns before the server's
	names       map[string]string
	cells       []string // reused
}

// An input is a column of the server's Table.
type input struct {
	shown  bool
	isName bool
	since  anchor // nil if the cells do not depend on the time
}

// NewPrinter returns a printer. sortKey may be nil.
func NewPrinter(r kube.Resource, c Columns, sortKey func(*scan.Object) any) *Printer {
	return &Printer{resource: r, columns: c, sortKey: sortKey, now: time.Now, names: map[string]string{}}
}

// At sets the clock by which the API server has printed ages. The default is time.Now.
func (p *Printer) At(now func() time.Time) { p.now = now }

// Columns returns the columns for the server's columnDefinitions. The result is not modified
// later. Without definitions, from a server without Tables, there are NAME and AGE.
func (p *Printer) Columns(definitions string) ([]table.Column, error) {
	if p.out != nil && definitions == p.definitions {
		return p.out, nil
	}
	all := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}, {Name: "Age", Type: "string"}}
	if definitions != "" {
		all = nil
		if err := json.Unmarshal([]byte(definitions), &all); err != nil {
			return nil, fmt.Errorf("columns: %w", err)
		}
	}
	p.definitions, p.in, p.out, p.lead = definitions, nil, []table.Column{}, 0
	if p.columns.Namespace {
		p.add("NAMESPACE", false)
		p.lead = 1
	}
	named := false
	for _, d := range all {
		in := input{shown: d.Priority == 0 || p.columns.Wide, isName: !named && d.Format == "name" && d.Type == "string"}
		named = named || in.isName
		if in.since = anchorOf(p.resource, d); in.shown {
			p.add(strings.ToUpper(d.Name), in.isName)
		}
		p.in = append(p.in, in)
	}
	for _, l := range p.columns.LabelColumns {
		p.add(strings.ToUpper(l[strings.LastIndexByte(l, '/')+1:]), false)
	}
	if p.columns.ShowLabels {
		p.add("LABELS", false)
	}
	return p.out, nil
}

func (p *Printer) add(name string, isName bool) {
	p.out = append(p.out, table.Column{Name: table.Clean(name), IsName: isName})
}

// Data returns what the table shows of an object. It keeps nothing of the object's text.
func (p *Printer) Data(o *scan.Object) (table.Data, error) {
	if _, err := p.Columns(o.Columns); err != nil {
		return table.Data{}, err
	}
	d := table.Data{Key: kube.Key(strings.Clone(string(o.Key))), UID: strings.Clone(o.UID)}
	d.Cells = make([]table.Cell, 0, len(p.out))
	if p.lead > 0 {
		d.Cells = append(d.Cells, table.Cell{Text: p.shared(o.Key.Namespace())})
	}
	var err error
	if o.Row == "" {
		err = p.withoutTable(o, &d)
	} else {
		err = p.row(o, &d)
	}
	if err != nil {
		return table.Data{}, err
	}
	for _, l := range p.columns.LabelColumns {
		d.Cells = append(d.Cells, table.Cell{Text: p.shared(table.Clean(o.Labels.Get(l)))})
	}
	if p.columns.ShowLabels {
		set := labels.Set{}
		for _, l := range o.Labels {
			set[l.Key] = l.Value
		}
		d.Cells = append(d.Cells, table.Cell{Text: table.Clean(labels.FormatLabels(set))})
	}
	if p.sortKey != nil {
		d.Sort = p.sortKey(o)
	}
	return d, nil
}

// row appends the cells that the server has printed.
func (p *Printer) row(o *scan.Object, d *table.Data) error {
	cells, _, err := o.Cells(p.cells[:0])
	if err != nil {
		return fmt.Errorf("row of %s: %w", o.Key, err)
	}
	p.cells = cells
	for i, in := range p.in {
		if !in.shown {
			continue
		}
		var c table.Cell
		if i < len(cells) {
			c.Text = text(cells[i])
		}
		if in.since != nil {
			c = in.since(o, c, p.now())
		}
		if in.isName {
			c.Text = strings.Clone(p.columns.NamePrefix + table.Clean(c.Text))
		} else {
			c.Text = p.shared(table.Clean(c.Text))
		}
		d.Cells = append(d.Cells, c)
	}
	return nil
}

// withoutTable appends name and age.
func (p *Printer) withoutTable(o *scan.Object, d *table.Data) error {
	d.Cells = append(d.Cells, table.Cell{Text: strings.Clone(p.columns.NamePrefix + table.Clean(o.Key.Name()))},
		created(o, table.Cell{Text: "<unknown>"}, p.now()))
	return nil
}

// text returns a cell as kubectl prints it. The argument is JSON.
func text(cell string) string {
	switch {
	case cell == "null" || cell == "":
		return ""
	case cell[0] == '"' && !strings.ContainsRune(cell, '\\'):
		return cell[1 : len(cell)-1]
	case cell[0] == '"' || cell[0] == '[' || cell[0] == '{':
		var v any
		if utiljson.Unmarshal([]byte(cell), &v) == nil { // as kubectl: integers keep their digits
			return fmt.Sprint(v)
		}
	}
	return cell
}

// maxShared limits how many texts a printer shares among rows.
const maxShared = 4096

// shared returns a copy of a text. Short ones, such as states, are shared by all rows.
func (p *Printer) shared(s string) string {
	if s == "" {
		return ""
	}
	if of, ok := p.names[s]; ok {
		return of
	}
	s = strings.Clone(s)
	if len(s) <= 24 {
		if len(p.names) >= maxShared {
			clear(p.names)
		}
		p.names[s] = s
	}
	return s
}

// clone returns the columns for a table to keep.
func clone(columns []table.Column) []table.Column { return slices.Clone(columns) }
