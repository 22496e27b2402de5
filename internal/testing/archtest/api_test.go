// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goldens have the exported API of the packages for users, by the pattern of their paths.
var goldens = map[string]string{
	"informer/...":             "testdata/informer.api",
	"localcluster/testcluster": "testdata/testcluster.api",
}

// unpromised are the packages that are public only because the gateway, another
// module, imports them too.
var unpromised = []string{"informer/kube", "informer/reflector", "informer/scan"}

var update = flag.Bool("update", false, "write the files testdata/*.api anew")

// TestAPI: the public API equals the reviewed golden files. A change has to be visible
// in review, and announced to users.
func TestAPI(t *testing.T) {
	for pattern, golden := range goldens {
		got := api(t, pattern)
		if *update {
			if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := difference(strings.Split(strings.TrimSpace(string(text)), "\n"), got); diff != "" {
			t.Errorf("the API of %s is not the one in %s:\n%sIf the change is intended: go test ./internal/testing/archtest -run TestAPI -update", pattern, golden, diff)
		}
	}
}

// difference returns the lines that only one of the two has.
func difference(want, got []string) string {
	var b strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintln(&b, "-", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintln(&b, "+", line)
		}
	}
	return b.String()
}

// api returns the exported API of packages, sorted.
func api(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Export,DepOnly", module+pattern).Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	var paths []string
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Export string
			DepOnly            bool
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		name := strings.TrimPrefix(p.ImportPath, module)
		if !p.DepOnly && !slices.Contains(unpromised, name) && !strings.Contains(name, "/internal/") {
			paths = append(paths, p.ImportPath)
		}
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var lines []string
	for _, path := range paths {
		p, err := imports.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range features(p) {
			lines = append(lines, strings.TrimPrefix(path, module)+": "+line)
		}
	}
	slices.Sort(lines)
	return lines
}

// features returns the exported names of a package, one per line.
func features(p *types.Package) []string {
	var lines []string
	names := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			lines = append(lines, fmt.Sprintf("const %s %s = %s", name, types.TypeString(o.Type(), names), o.Val().ExactString()))
		case *types.TypeName:
			lines = append(lines, typeFeatures(o, names)...)
		default:
			lines = append(lines, types.ObjectString(o, names))
		}
	}
	return lines
}

// typeFeatures returns the exported fields and methods of a type, including those
// of its embedded fields.
func typeFeatures(o *types.TypeName, names types.Qualifier) []string {
	head := "type " + types.TypeString(o.Type(), names)
	var lines []string
	under := o.Type().Underlying()
	what := types.TypeString(under, names)
	switch u := under.(type) {
	case *types.Struct:
		what = "struct"
		for f := range u.Fields() {
			if f.Exported() {
				lines = append(lines, fmt.Sprintf("%s, field %s %s", head, f.Name(), types.TypeString(f.Type(), names)))
			}
		}
	case *types.Interface:
		what = "interface"
	}
	if alias, ok := o.Type().(*types.Alias); ok {
		what = "= " + types.TypeString(alias.Rhs(), names)
	}
	lines = append(lines, head+" "+what)
	values := types.NewMethodSet(o.Type())
	all := types.NewMethodSet(types.NewPointer(o.Type()))
	if types.IsInterface(o.Type()) {
		all = values
	}
	for m := range all.Methods() {
		if !m.Obj().Exported() {
			continue
		}
		of := "method"
		if values.Lookup(m.Obj().Pkg(), m.Obj().Name()) == nil {
			of = "method of *"
		}
		lines = append(lines, fmt.Sprintf("%s, %s %s%s", head, of, m.Obj().Name(), strings.TrimPrefix(types.TypeString(m.Type(), names), "func")))
	}
	return lines
}

// TestFeatures: features has every exported name, and no other.
func TestFeatures(t *testing.T) {
	features := func(text string) []string {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "p.go", "package p\n"+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := new(types.Config).Check("p", fset, []*ast.File{file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return features(p)
	}
	before := features(`
		type T[K comparable] struct { A, b int; Embedded }
		type Embedded struct{}
		func (Embedded) Up() {}
		func (*T[K]) Do(key K) (n int) { return 0 }
		func (T[K]) no() {}
		type I interface { M(int); n() }
		type hidden[O any] struct{}
		func (*hidden[O]) Run(O) {}
		type Shown = hidden[string]
		const C I2 = 3
		type I2 int
		var V, v = 1, 2
		func F(a int, more ...T[string]) {}
		func f() {}`)
	want := []string{
		"const C I2 = 3",
		"type Embedded struct", "type Embedded, method Up()",
		"func F(a int, more ...T[string])",
		"type I interface", "type I, method M(int)",
		"type I2 int",
		"type Shown = hidden[string]", "type Shown, method of * Run(string)",
		"type T[K comparable], field A int", "type T[K comparable], field Embedded Embedded", "type T[K comparable] struct",
		"type T[K comparable], method of * Do(key K) (n int)", "type T[K comparable], method Up()",
		"var V int",
	}
	if diff := cmp.Diff(want, before); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got := difference(features("type A struct { X int }; func F(int) {}"), features("type A struct { X int64 }; func F(int) {}; func G() {}"))
	if want := "- type A, field X int\n+ type A, field X int64\n+ func G()\n"; got != want {
		t.Errorf("the difference is\n%swant\n%s", got, want)
	}
}
