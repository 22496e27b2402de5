// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const conditions = `{"kind":"W","apiVersion":"e/v1","metadata":{"name":"w","resourceVersion":"8"},"status":{"conditions":[` +
	`{"type":"A","status":"False"},null,{"status":"True","type":"Re\u0061dy","why":{"x":[1,2]}},{"type":"Ready","status":"Unknown"}],"n":-1.5e3}}`

func TestRows(t *testing.T) {
	for paths, want := range map[string]string{
		"spec.nodeName,metadata.name":                                `"n1","a"`,
		"metadata.name,spec.nodeName":                                `"a","n1"`,
		"spec.nodeName,spec.nodeName":                                `"n1","n1"`,
		"nowhere,spec.nowhere,spec.none,spec.none.x,spec.nodeName.x": `null,null,null,null,null`,
		"metadata.labels['app.kubernetes.io/name'],metadata.labels":  `"web",{"app.kubernetes.io/name":"web","tier":"x"}`,
		"metadata.labels,metadata.labels.tier":                       `{"app.kubernetes.io/name":"web","tier":"x"},"x"`,
		"spec.containers[*].image":                                   `["i1",null,null,null]`,
		"spec.containers[*].ports[*].containerPort":                  `[[80,81],null,null,null]`,
		"spec.containers[*].ports[*].containerPort,spec.containers[*].ports[*].x,spec.containers[*].name": `[[80,81],null,null,null],[[null,null],null,null,null],["c","d",null,null]`,
		"spec.containers[0].image,spec.containers[1].image,spec.containers[9].image":                      `"i1",null,null`,
		"spec.containers[0].ports[1].containerPort,spec.containers[0].ports[*].containerPort":             `81,[80,81]`,
		"spec.containers[3],spec.containers[2]":                                                           `3,null`,
		`spec.containers[?(@.name=="d")].name`:                                                            `"d"`,
		`spec.containers[?(@.name=='c')].ports[*]`:                                                        `[{"containerPort":80},{"containerPort":81}]`,
		`spec.containers[?(@.name=="none")].image`:                                                        `null`,
		`spec.containers[?(@.name=="c")].ports[1]`:                                                        `{"containerPort":81}`,
		"spec.empty[*].x,spec.empty[0],spec.empty":                                                        `[],null,[]`,
		"spec.nodeName[*],spec[*],status[0],spec[\"empty\"]":                                              `null,null,null,[]`,
	} {
		check(t, projected, paths, `["ns","a","u","57",`+want+`]`)
	}
	for paths, want := range map[string]string{
		`status.conditions[?(@.type=="Ready")].status`:                                               `"True"`,
		`status.conditions[?(@.type=="Ready")].why.x[1],status.conditions[?(@.type=="A")].status`:    `2,"False"`,
		`status.conditions[?(@.status=="True")].type,status.conditions[*].status,status.n`:           `"Re\u0061dy",["False",null,"True","Unknown"],-1.5e3`,
		`status.conditions[?(@.why=="x")].status,status.conditions[2].why.x[*],status.conditions[3]`: `null,[1,2],{"type":"Ready","status":"Unknown"}`,
	} {
		check(t, conditions, paths, `[null,"w",null,"8",`+want+`]`)
	}
}

func check(t *testing.T, object, paths, want string) {
	t.Helper()
	o, err := ParseObject(object)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseRows(paths)
	if err != nil {
		t.Errorf("%s: %v", paths, err)
		return
	}
	for range 2 { // the writer is used again
		text, rv := p.Project(o)
		if text != want {
			t.Errorf("%s:\n got %s\nwant %s", paths, text, want)
		}
		if !strings.HasPrefix(text[rv:], kube.FormatRV(o.RV)+`"`) {
			t.Errorf("%s: wrong offset of the RV: %d of %s", paths, rv, text)
		}
	}
	if got := string(p.AppendRow([]byte("before"), object)); got != "before"+want {
		t.Errorf("%s: %s", paths, got)
	}
}

func TestParseRows(t *testing.T) {
	for _, bad := range []string{
		"", "a,", "a[", "a[x]", "a[-1]", "a[1", "a[99999999999]", "a[0]b", "[0]", "a.[0]", "a[?]", "a[?(@.b)]", `a[?(@.b=="c"]`, `a[?(@.b==c)]`, `a[?(@.b=="")]`,
		`a[?(@['b']=="c")]`, `[?(@.b=="c")]`, strings.Repeat("a,", maxPaths) + "a",
	} {
		if p, err := ParseRows(bad); !errors.Is(err, ErrPath) {
			t.Errorf("%.50q is read as %v: %v", bad, p, err)
		}
	}
	a, err := ParseRows(`b[?(@.c=="d,e")].f,a['x,y']`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.Columns()[4:], []string{`b[?(@.c=="d,e")].f`, `a['x,y']`}; !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
	b, errB := ParseRows(`a['x,y'],b[?(@.c=="d,e")].f`)
	c, errC := ParsePaths(`a['x,y']`)
	if err := errors.Join(errB, errC); err != nil || a.Key() == b.Key() || b.Key() == c.Key() || c.Columns() != nil {
		t.Errorf("equal keys of different projections, or columns of an object: %v", err)
	}
}

// FuzzRows: a row has the values that its paths lead to in the decoded object.
func FuzzRows(f *testing.F) {
	for _, seed := range []string{"spec.nodeName", "a['b.c/d'],e[*].f", `spec.containers[?(@.name=="d")]`, "spec.containers[*].ports[*].containerPort,status,spec.containers[0].ports[1],spec"} {
		f.Add(seed, projected)
		f.Add(seed, conditions)
	}
	f.Fuzz(func(t *testing.T, text, object string) {
		p, err := ParseRows(text)
		if err != nil {
			return
		}
		var decoded any
		d := json.NewDecoder(strings.NewReader(object))
		d.UseNumber()
		if d.Decode(&decoded) != nil {
			return
		}
		plain, err := json.Marshal(decoded) // without members of one name
		if err != nil {
			t.Fatal(err)
		}
		o, err := ParseObject(string(plain))
		if err != nil {
			return
		}
		got, rv := p.Project(o)
		var row []any
		d = json.NewDecoder(strings.NewReader(got))
		d.UseNumber()
		if err := d.Decode(&row); err != nil || len(row) != len(p.Columns()) {
			t.Fatalf("%q shows %q of %s: %v", text, got, plain, err)
		}
		if !strings.HasPrefix(got[rv:], kube.FormatRV(o.RV)) && !bytes.Contains(plain, []byte(`\`)) {
			t.Fatalf("%q shows %q: no RV at %d", text, got, rv)
		}
		paths, err := parsePaths(strings.Join(p.Columns(), ","))
		if err != nil && len(p.Columns()) <= maxPaths {
			t.Fatal(err)
		}
		for i, path := range paths {
			if want := follow(decoded, path.steps); fmt.Sprint(row[i]) != fmt.Sprint(want) {
				t.Fatalf("%s is %v, want %v, in %s", path.text, row[i], want, plain)
			}
		}
	})
}

// follow returns what a path leads to in a decoded value.
func follow(value any, steps []step) any {
	if len(steps) == 0 || value == nil {
		return value
	}
	s, rest := steps[0], steps[1:]
	if s.kind == stepMember {
		object, _ := value.(map[string]any)
		return follow(object[s.name], rest)
	}
	array, ok := value.([]any)
	switch {
	case !ok:
		return nil
	case s.kind == stepIndex && s.index < len(array):
		return follow(array[s.index], rest)
	case s.kind == stepEach:
		all := make([]any, len(array))
		for i := range array {
			all[i] = follow(array[i], rest)
		}
		return all
	case s.kind == stepWhere:
		for _, element := range array {
			if object, ok := element.(map[string]any); ok && object[s.name] == any(s.value) {
				return follow(element, rest)
			}
		}
	}
	return nil
}
