// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const tableHead = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"50","continue":"tok"},"columnDefinitions":`

func TestParseTable(t *testing.T) {
	const row = `"cells":["a","1/1",3,null],"conditions":[{"type":"Completed"}]`
	rows := `,"rows":[{` + row + `,"object":` + pod + `}]}`
	f, err := ParseFrame(`{"type":"ADDED","object":` + tableHead + `[{"name":"Name"}]` + rows + `}`)
	if err != nil {
		t.Fatal(err)
	}
	if o := f.Object; o.JSON != pod || o.RV != 42 || o.Key != "ns/a" || o.Row != row || o.Columns != `[{"name":"Name"}]` {
		t.Errorf("frame %+v", f.Object)
	}
	cells, rest, err := f.Object.Cells(nil)
	if err != nil || !slices.Equal(cells, []string{`"a"`, `"1/1"`, "3", "null"}) || rest != `,"conditions":[{"type":"Completed"}]` {
		t.Errorf("cells %q, %q, %v", cells, rest, err)
	}
	if f, err = ParseFrame(`{"type":"ADDED","object":` + tableHead + `null` + rows + `}`); err != nil || f.Object.Columns != "" {
		t.Errorf("without columns: %+v %v", f.Object, err)
	}
	if f.Detach("[]"); f.Object.JSON != pod || f.Object.Row != row || f.Object.Columns != "[]" || f.Object.Key != "ns/a" {
		t.Errorf("detached: %+v", f.Object)
	}
	l, err := ParseList(tableHead+`[{"name":"Name"}]`+rows, "")
	if err != nil || l.RV != 50 || l.Continue != "tok" || l.Columns != `[{"name":"Name"}]` || len(l.Items) != 1 ||
		l.Items[0].JSON != pod || l.Items[0].Row != row || l.Items[0].Columns != l.Columns {
		t.Errorf("list %+v %v", l, err)
	}
	if l, err = ParseList(tableHead+`[],"rows":null}`, "Pod"); err != nil || len(l.Items) != 0 {
		t.Errorf("empty list %+v %v", l, err)
	}
	partial := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","resourceVersion":"1"}}`
	for text, want := range map[string]error{
		tableHead + `[],"rows":[{"cells":[]}]}`:                                   ErrBareTable,
		tableHead + `[],"rows":[{"cells":[],"object":null}]}`:                     ErrBareTable,
		tableHead + `[],"rows":[{"cells":[],"object":` + partial + `}]}`:          ErrBareTable,
		tableHead + `[],"rows":[]}`:                                               ErrNotObject,
		tableHead + `[],"rows":[{"object":` + pod + `},{"object":` + pod + `}]}`:  ErrNotObject,
		tableHead + `[],"rows":[{"object":` + pod + `}`:                           ErrSyntax,
		tableHead + `[],"rows":[{"cells":[}]}`:                                    ErrSyntax,
		strings.Replace(tableHead, `"50"`, `""`, 1) + `[],"rows":[{"cells":[]}]}`: ErrBareTable,
	} {
		if _, err := ParseFrame(`{"type":"ADDED","object":` + text + `}`); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	// A custom resource may have the kind Table, and rows.
	custom := `{"apiVersion":"example.com/v1","kind":"Table","metadata":{"name":"t","resourceVersion":"3"},"rows":[1]}`
	if f, err := ParseFrame(`{"type":"ADDED","object":` + custom + `}`); err != nil || f.Object.JSON != custom {
		t.Errorf("custom Table: %+v %v", f.Object, err)
	}
	// With the object first, the row is unknown.
	if f, err := ParseFrame(`{"type":"ADDED","object":` + tableHead + `[],"rows":[{"object":` + pod + `,"cells":["a"]}]}}`); err != nil || f.Object.Row != "" || f.Object.JSON != pod {
		t.Errorf("%+v %v", f.Object, err)
	}
}
