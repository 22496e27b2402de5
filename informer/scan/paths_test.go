// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const projected = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"57","labels":{"app.kubernetes.io/name":"web","tier":"x"},"annotations":{}},` +
	`"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i1","ports":[{"containerPort":80},{"containerPort":81}]},{"name":"d"},null,3],"none":null,"empty":[]},"status":{"phase":"Running"}}`

func TestProject(t *testing.T) {
	const base = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"57"`
	o, err := ParseObject(projected)
	if err != nil {
		t.Fatal(err)
	}
	for paths, want := range map[string]string{
		"metadata.name":                                    base + `}}`,
		"spec.nodeName":                                    base + `},"spec":{"nodeName":"n1"}}`,
		"status,spec.nodeName":                             base + `},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}`,
		"spec.nodeName,spec.none":                          base + `},"spec":{"nodeName":"n1","none":null}}`,
		"spec.nodeName.x":                                  base + `}}`,
		"spec.none.x":                                      base + `}}`,
		"nowhere,spec.nowhere":                             base + `}}`,
		"metadata.labels['app.kubernetes.io/name']":        base + `,"labels":{"app.kubernetes.io/name":"web"}}}`,
		`["metadata"]["labels"]["app.kubernetes.io/name"]`: base + `,"labels":{"app.kubernetes.io/name":"web"}}}`,
		"metadata.labels.tier,metadata.annotations":        base + `,"labels":{"tier":"x"},"annotations":{}}}`,
		"metadata.annotations.x":                           base + `}}`,
		"spec.containers[*].image":                         base + `},"spec":{"containers":[{"image":"i1"},{},{},{}]}}`,
		"spec.containers.image":                            base + `}}`, // not of an object
		"spec.containers[*].ports[*].containerPort":        base + `},"spec":{"containers":[{"ports":[{"containerPort":80},{"containerPort":81}]},{},{},{}]}}`,
		"spec.containers[*].ports[*].nowhere":              base + `},"spec":{"containers":[{"ports":[{},{}]},{},{},{}]}}`,
		"spec.containers[*]":                               base + `},"spec":{"containers":[{"name":"c","image":"i1","ports":[{"containerPort":80},{"containerPort":81}]},{"name":"d"},null,3]}}`,
		"spec.empty[*].x":                                  base + `},"spec":{"empty":[]}}`,
		"spec.nodeName[*]":                                 base + `}}`,
		"spec.containers[*].name,spec.containers[*].image,status.phase": base + `},"spec":{"containers":[{"name":"c","image":"i1"},{"name":"d"},{},{}]},"status":{"phase":"Running"}}`,
		"metadata,spec.nodeName":   projected[:strings.Index(projected, `,"spec"`)] + `,"spec":{"nodeName":"n1"}}`,
		"kind,status.phase,status": base + `},"status":{"phase":"Running"}}`,
	} {
		p, err := ParsePaths(paths)
		if err != nil {
			t.Errorf("%s: %v", paths, err)
			continue
		}
		text, rv := p.Project(o)
		if text != want {
			t.Errorf("%s:\n got %s\nwant %s", paths, text, want)
		}
		if !strings.HasPrefix(text[rv:], `57"`) {
			t.Errorf("%s: wrong offset of the RV: %d of %s", paths, rv, text)
		}
	}
}

func TestParsePaths(t *testing.T) {
	for _, bad := range []string{
		"", ",", "a,", ",a", ".a", "a..b", "a.", "a b", "a[0]", "a[", "a[*", "a[]", "a['b]", "a['']", "a['b'", "a['b'c']", "[*].a", "a.[*]", "a[*]b",
		"a/b", "a.b/c", "é", "*", "a.*", "a{b}", "a\nb", strings.Repeat("a.", maxPathDepth) + "a",
		strings.Repeat("a,", maxPaths) + "a", strings.Repeat("a", maxPathsLen+1),
	} {
		if p, err := ParsePaths(bad); !errors.Is(err, ErrPath) {
			t.Errorf("%.50q is read as %v: %v", bad, p, err)
		}
	}
	for _, same := range [][2]string{
		{"a,b", "b,a"}, {"a.b,a", "a"}, {"a['b']", "a.b"}, {`a["b c"]`, "a['b c']"}, {"a,a", "a"}, {"metadata.name", "kind"}, {"a[*],a", "a"},
	} {
		a, errA := ParsePaths(same[0])
		b, errB := ParsePaths(same[1])
		if errA != nil || errB != nil || a.Key() != b.Key() {
			t.Errorf("%q is %v, %q is %v; %v %v", same[0], a, same[1], b, errA, errB)
		}
	}
	for _, differ := range [][2]string{{"a.b", "a"}, {"a[*].b", "a.b"}, {"a.b", "a['.b']"}, {`a['"b']`, "a.b"}, {"a[*]", "a"}} {
		a, errA := ParsePaths(differ[0])
		b, errB := ParsePaths(differ[1])
		if errA != nil || errB != nil || a.Key() == b.Key() {
			t.Errorf("%q and %q are %v; %v %v", differ[0], differ[1], a, errA, errB)
		}
	}
}

// FuzzPaths: a projection is a valid object with the parts that all projections
// have, and its own projection is equal to it.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"spec.nodeName", "a['b.c/d'],e[*].f", "metadata", `["x"][*]["y"]`, "spec.containers[*].ports[*].containerPort,status"} {
		f.Add(seed, projected)
	}
	f.Add("spec.a", `{"apiVersion":"e/v1","kind":"W","metadata":{"name":"w","resourceVersion":"4"},"spec":{"\u0061":1,"a":[2]}}`)
	f.Fuzz(func(t *testing.T, text, object string) {
		p, err := ParsePaths(text)
		if err != nil {
			return
		}
		o, err := ParseObject(object)
		if err != nil {
			return
		}
		got, rv := p.Project(o)
		if !json.Valid([]byte(got)) {
			t.Fatalf("%q shows %q of %s", text, got, object)
		}
		of, err := ParseObject(got)
		if err != nil || of.Key != o.Key || of.UID != o.UID || of.RV != o.RV || of.Kind != o.Kind || of.APIVersion != o.APIVersion {
			t.Fatalf("%q shows %q of %s: %v", text, got, object, err)
		}
		if !strings.HasPrefix(got[rv:], kube.FormatRV(o.RV)) && !strings.Contains(object, `\`) {
			t.Fatalf("%q shows %q: no RV at %d", text, got, rv)
		}
		if again, at := p.Append([]byte("before"), of); string(again) != "before"+got || at != rv {
			t.Fatalf("%q shows %q of %q", text, again, got)
		}
	})
}

// TestProjectionsAreCached: an object caches the projection that was made twice, if it is
// short, and each projection is that of its paths.
func TestProjectionsAreCached(t *testing.T) {
	o, err := ParseObject(`{"metadata":{"name":"web","resourceVersion":"7","labels":{"app":"web"}},"spec":{"text":"` + strings.Repeat("long ", 200) + `"}}`)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ParseRows("metadata.labels.app")
	if err != nil {
		t.Fatal(err)
	}
	name, err := ParsePaths("metadata.name")
	if err != nil {
		t.Fatal(err)
	}
	long, err := ParseRows("spec.text")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		paths  *Paths
		cached bool // afterwards
	}{
		{app, false}, {app, true}, {app, true},
		{name, false}, {app, false}, {name, false}, {name, true}, // one for all paths
		{long, false}, {long, false}, {long, false}, {app, false}, {app, true},
	} {
		made, wantRV := step.paths.append(nil, o)
		want := string(made)
		got, rv := step.paths.Append([]byte("before "), o)
		if string(got) != "before "+want || rv != wantRV {
			t.Fatalf("%s at %d, want %s at %d", got, rv, want, wantRV)
		}
		if text, rv := step.paths.Project(o); text != want || rv != wantRV {
			t.Fatalf("%s at %d, want %s at %d", text, rv, want, wantRV)
		}
		cached := o.cached.Load()
		if is := cached.text != ""; is != step.cached || cached.key != step.paths.key {
			t.Fatalf("after %s an object caches %+v", want, cached)
		}
	}
	if again := o.WithRow("", ""); again.cached.Load() != nil || again.JSON != o.JSON {
		t.Error("a copy has the projection")
	}
}

// BenchmarkProject projects a Pod to the fields that a page may show.
func BenchmarkProject(b *testing.B) {
	text, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	o, err := ParseObject(string(text))
	if err != nil {
		b.Fatal(err)
	}
	p, err := ParsePaths("metadata.labels,metadata.ownerReferences[*].name,spec.nodeName,spec.containers[*].resources.requests,status.phase,status.conditions[*].type,status.conditions[*].status,status.containerStatuses[*].ready")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		out, _ = p.append(out[:0], o)
	}
}
