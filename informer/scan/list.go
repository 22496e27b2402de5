// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A List is one page of a collection.
type List struct {
	Kind, APIVersion string
	RV               uint64
	Continue         string
	Items            []*Object
	// Typed is the form of the list and its items; see [Object.Typed].
	Typed bool
	// ItemKind is the kind of the items.
	ItemKind string
	// Columns are the columnDefinitions of a Table, "" if unknown.
	Columns string
}

// maxItemHeader bounds the bytes of an item's kind and apiVersion, which are
// repeated in every item.
const maxItemHeader = 1 << 10

// ParseList parses a list, or a Table. itemKind is the kind of its items; by
// default it is the list's kind without "List", which is wrong for a Table and
// for custom resources that name their lists otherwise. Items that omit kind and
// apiVersion get them. Each item has a copy of its text, so that it does not keep
// the list's in memory.
func ParseList(text, itemKind string) (*List, error) {
	l := &List{}
	p := scanner{s: text}
	var t table
	var items []string
	hasItems := false
	n := 0
	for first := true; ; first = false {
		name, ok, err := p.member(first)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		n++
		switch name {
		case "kind":
			l.Kind, err = p.textOrNull()
			l.Typed = n == 1
		case "apiVersion":
			l.APIVersion, err = p.textOrNull()
		case "metadata":
			err = p.listMetadata(l)
		case "items":
			hasItems = true
			items, err = p.items()
		default:
			if l.table() {
				err = t.member(&p, name)
			} else {
				err = p.skip()
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	if l.ItemKind = itemKind; itemKind == "" {
		l.ItemKind = strings.TrimSuffix(l.Kind, "List")
	}
	if l.table() {
		l.Columns = strings.Clone(t.columns)
		return l, l.rows(t.objects)
	}
	if !hasItems || l.RV == 0 || l.ItemKind == "" || len(l.header()) > maxItemHeader {
		return nil, notList(l.Kind)
	}
	l.Items = make([]*Object, 0, len(items))
	for _, item := range items {
		o, err := l.item(item)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, o)
	}
	return l, nil
}

func (l *List) table() bool { return isTable(l.Kind, l.APIVersion) }

// rows makes the objects of a Table the list's items.
func (l *List) rows(objects []*Object) error {
	if l.RV == 0 {
		return fmt.Errorf("%w: a Table without a resourceVersion", ErrNotObject)
	}
	for _, o := range objects {
		if err := o.check(); err != nil {
			return err
		}
		o.detach(l.Columns)
		l.Items = append(l.Items, o)
	}
	return nil
}

// Newest returns the item that has the highest RV, nil if there is none.
func (l *List) Newest() (newest *Object) {
	for _, o := range l.Items {
		if newest == nil || o.RV > newest.RV {
			newest = o
		}
	}
	return newest
}

// EmptyItem returns an object of the list's kind and columns that has only kind,
// apiVersion and empty metadata.
func (l *List) EmptyItem() *Object {
	p := scanner{s: l.header() + `"metadata":{}}`}
	o, err := p.kubeObject()
	if err != nil {
		panic(err) // the text is valid
	}
	o.Columns = l.Columns
	return o
}

// header returns an item's opening brace, kind and apiVersion, and a comma.
func (l *List) header() string {
	kind, _ := json.Marshal(l.ItemKind) // strings have no errors
	version, _ := json.Marshal(l.APIVersion)
	if l.Typed {
		return `{"kind":` + string(kind) + `,"apiVersion":` + string(version) + `,`
	}
	return `{"apiVersion":` + string(version) + `,"kind":` + string(kind) + `,`
}

// itemHeader returns the header that the list's items omit, "" if they omit none.
func (l *List) itemHeader() string {
	if !l.Typed {
		return ""
	}
	return l.header()
}

func (l *List) item(text string) (*Object, error) {
	if strings.HasPrefix(text, `{"metadata":`) {
		return ParseObject(l.header() + text[1:])
	}
	o, err := ParseObject(strings.Clone(text))
	if err != nil || o.Kind != "" {
		return o, err
	}
	return ParseObject(l.header() + strings.TrimLeft(text, " \t\r\n")[1:])
}

func (p *scanner) listMetadata(l *List) error {
	l.RV, l.Continue = 0, ""
	for first := true; ; first = false {
		name, ok, err := p.member(first)
		if err != nil || !ok {
			return err
		}
		switch name {
		case "resourceVersion":
			var text string
			if text, err = p.textOrNull(); err == nil {
				l.RV, err = kube.ParseRV(text)
			}
		case "continue":
			l.Continue, err = p.textOrNull()
		default:
			err = p.skip()
		}
		if err != nil {
			return err
		}
	}
}

func (p *scanner) items() ([]string, error) {
	if p.at('n') {
		return nil, p.literal("null")
	}
	var out []string
	for first := true; ; first = false {
		ok, err := p.element(first)
		if err != nil || !ok {
			return out, err
		}
		p.space()
		from := p.i
		if err := p.skip(); err != nil {
			return nil, err
		}
		out = append(out, p.s[from:p.i])
	}
}

// ErrNotList marks JSON that is no list of Kubernetes objects, whatever it has. It wraps
// [ErrNotObject].
var ErrNotList = fmt.Errorf("%w: not a list", ErrNotObject)

// notList returns the error for what is no list with a resourceVersion.
func notList(kind string) error {
	if !strings.HasSuffix(kind, "List") {
		return fmt.Errorf("%w: its kind is %q", ErrNotList, kind)
	}
	return fmt.Errorf("%w: the %s has no resourceVersion", ErrNotObject, kind)
}
