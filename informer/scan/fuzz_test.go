// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// The corpora are in testdata/fuzz. Results are compared with those of
// encoding/json; of members of one name both take the last.

// FuzzScan: the scanner accepts what encoding/json accepts.
func FuzzScan(f *testing.F) {
	for _, s := range []string{pod, widget, `[1,-0.5e+3,"\u00e9\"",true,null]`, `{"a":{}}`, `[]`, `01`, `"\x"`, `{"a":1,}`, " {} "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := scanner{s: text}
		err := p.skip()
		if err == nil {
			err = p.end()
		}
		if valid := json.Valid([]byte(text)); valid != (err == nil) {
			t.Fatalf("%q: valid %v, scanner says %v", text, valid, err)
		}
		if o, err := ParseObject(text); err == nil {
			checkObject(t, o, text)
			checkStored(t, o)
		}
	})
}

// checkStored fails if the stored text of an object is read as another object. The members
// of an object that is checked have different names.
func checkStored(t *testing.T, o *Object) {
	t.Helper()
	names := map[string]int{}
	p := scanner{s: o.JSON}
	for first := true; ; first = false {
		name, ok, err := p.member(first)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if names[name]++; names[name] > 1 {
			return
		}
		if err := p.skip(); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := ParseStored(o.JSON)
	if err != nil || !reflect.DeepEqual(stored, o) {
		t.Fatalf("%s is read as %+v, %v, want %+v", o.JSON, stored, err, o)
	}
}

// FuzzFrame: the object of a frame is the one in its text, also of a Table, and its
// copies and bookmarks are equal to it.
func FuzzFrame(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		frame, err := ParseFrame(text)
		if err != nil {
			return
		}
		event := members(t, text)
		if got := str(t, event["type"]); got != string(frame.Type) {
			t.Fatalf("type %q, want %q", frame.Type, got)
		}
		want := string(event["object"])
		if frame.Type == kube.Error {
			if frame.Object != nil || !strings.Contains(want, frame.Status) {
				t.Fatalf("ERROR %q of %q", frame.Status, want)
			}
			return
		}
		if o := members(t, want); isTable(str(t, o["kind"]), str(t, o["apiVersion"])) {
			var rows []json.RawMessage
			decode(t, string(o["rows"]), &rows)
			if len(rows) != 1 {
				t.Fatalf("%d rows", len(rows))
			}
			checkRow(t, frame.Object, string(rows[0]))
			want = string(members(t, string(rows[0]))["object"])
		}
		checkObject(t, frame.Object, want)
		row := strings.Clone(frame.Object.Row)
		var detached Frame
		line := []byte(text)
		if err := detached.Scan(line); err != nil || detached.Type != frame.Type {
			t.Fatalf("%+v, %v", detached, err)
		}
		detached.Detach("[]")
		copy(line, bytes.Repeat([]byte{'#'}, len(line))) // it has no part in the object
		o, again := frame.Object, detached.Object
		checkObject(t, again, want)
		if again.Row != row || again.Key != o.Key || again.UID != o.UID || again.RV != o.RV || !slices.Equal(again.Labels, o.Labels) || again.Columns != "[]" {
			t.Errorf("detached %+v of %+v", again, o)
		}
		if frame.Type == kube.Bookmark {
			for _, end := range []bool{false, true} {
				b := BookmarkObject(o, o.RV+1, end)
				if b.RV != o.RV+1 || b.InitialEventsEnd() != end || !reflect.DeepEqual(value(t, b.JSON, "metadata"), value(t, o.JSON, "metadata")) {
					t.Errorf("a bookmark %s after %s", b.JSON, o.JSON)
				}
			}
		}
	})
}

// FuzzList: the items of a list are those in its text.
func FuzzList(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, itemKind string) {
		l, err := ParseList(text, itemKind)
		if err != nil {
			return
		}
		list := members(t, text)
		meta := members(t, string(list["metadata"]))
		if got := str(t, meta["resourceVersion"]); got != kube.FormatRV(l.RV) && strings.TrimLeft(got, "0") != kube.FormatRV(l.RV) {
			t.Errorf("RV %d of %q", l.RV, got)
		}
		if got := str(t, meta["continue"]); got != clean(l.Continue) {
			t.Errorf("continue %q, want %q", l.Continue, got)
		}
		var items []json.RawMessage
		if l.table() {
			decode(t, cmp.Or(string(list["rows"]), "null"), &items)
		} else {
			decode(t, cmp.Or(string(list["items"]), "null"), &items)
		}
		if len(items) != len(l.Items) {
			t.Fatalf("%d items, want %d", len(l.Items), len(items))
		}
		for i, o := range l.Items {
			want := string(items[i])
			if l.table() {
				checkRow(t, o, want)
				want = string(members(t, want)["object"])
			} else if members(t, want)["kind"] == nil && clean(o.Kind) != clean(l.ItemKind) {
				t.Errorf("an item of kind %q, want %q", o.Kind, l.ItemKind)
			}
			if !reflect.DeepEqual(value(t, o.JSON, "kind", "apiVersion"), value(t, want, "kind", "apiVersion")) {
				t.Errorf("item %s, want %s", o.JSON, want)
			}
			checkObject(t, o, o.JSON)
		}
		if o := l.EmptyItem(); o.Typed() != l.Typed {
			t.Errorf("EmptyItem %s", o.JSON)
		}
	})
}

// checkObject compares an object with its text.
func checkObject(t *testing.T, o *Object, text string) {
	t.Helper()
	if strings.TrimSpace(text) != o.JSON {
		t.Fatalf("object %q, want %q", o.JSON, text)
	}
	object := members(t, text)
	if kind, version := str(t, object["kind"]), str(t, object["apiVersion"]); kind != clean(o.Kind) || version != clean(o.APIVersion) {
		t.Errorf("%s %s of %s", o.APIVersion, o.Kind, text)
	}
	meta := members(t, string(object["metadata"]))
	if key := kube.MakeKey(str(t, meta["namespace"]), str(t, meta["name"])); kube.Key(clean(string(o.Key))) != key || str(t, meta["uid"]) != clean(o.UID) {
		t.Errorf("%q %q of %s", o.Key, o.UID, text)
	}
	if rv, err := kube.ParseRV(str(t, meta["resourceVersion"])); err != nil || rv != o.RV {
		t.Errorf("RV %d of %s", o.RV, text)
	}
	if strings.HasPrefix(string(meta["labels"]), "{") {
		want, got := map[string]string{}, map[string]string{}
		decode(t, string(meta["labels"]), &want)
		for _, l := range o.Labels {
			got[clean(l.Key)] = clean(o.Labels.Get(l.Key))
		}
		// Two keys may differ only in bytes that are not UTF-8.
		if !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))) || clean(text) == text && !maps.Equal(want, got) {
			t.Errorf("labels %q of %s", got, text)
		}
	} else if len(o.Labels) > 0 {
		t.Errorf("labels %q of %s", o.Labels, text)
	}

	before, metadata, after := o.Metadata()
	if before+metadata+after != o.JSON || metadata != string(object["metadata"]) {
		t.Errorf("metadata %s of %s", metadata, text)
	}
	brace, rest := o.ListItem()
	if !reflect.DeepEqual(value(t, brace+rest, "kind", "apiVersion"), value(t, text, "kind", "apiVersion")) {
		t.Errorf("in a list %s%s, of %s", brace, rest, text)
	}
	at := o.At(o.RV + 1)
	if at.RV != o.RV+1 || at.Key != o.Key {
		t.Errorf("with another RV: %+v", at)
	}
	want := value(t, text).(map[string]any)
	want["metadata"].(map[string]any)["resourceVersion"] = kube.FormatRV(at.RV)
	if !reflect.DeepEqual(value(t, at.JSON), want) {
		t.Errorf("with another RV: %s, of %s", at.JSON, text)
	}
}

// checkRow compares an object's row with the row's text.
func checkRow(t *testing.T, o *Object, row string) {
	t.Helper()
	if o.Row == "" {
		return // the object is the first member of the row, or not the last
	}
	if !reflect.DeepEqual(value(t, "{"+o.Row+"}", "object"), value(t, row, "object")) {
		t.Errorf("printed as %s, want %s", o.Row, row)
	}
	if cells, rest, err := o.Cells(nil); err == nil {
		again := `{"cells":[` + strings.Join(cells, ",") + "]" + rest + "}"
		if !reflect.DeepEqual(value(t, again), value(t, "{"+o.Row+"}")) {
			t.Errorf("cells %q and %q of %s", cells, rest, o.Row)
		}
	}
}

// members returns the members of an object as text.
func members(t *testing.T, text string) (m map[string]json.RawMessage) {
	t.Helper()
	decode(t, text, &m)
	return m
}

// value decodes an object without some of its members.
func value(t *testing.T, text string, without ...string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	for _, name := range without {
		delete(v, name)
	}
	return v
}

// str decodes a string, null or empty text.
func str(t *testing.T, text json.RawMessage) (s string) {
	t.Helper()
	decode(t, cmp.Or(string(text), "null"), &s)
	return s
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}

// clean returns text as encoding/json decodes it: each byte that is not UTF-8 becomes
// a replacement character. The scanner keeps it.
func clean(s string) string { return string([]rune(s)) }

// TestScanTakesLinearMemory: any answer takes memory in proportion to its size.
func TestScanTakesLinearMemory(t *testing.T) {
	const (
		n       = 1 << 20
		maxEach = 200 // allocated bytes per byte of text, including garbage
	)
	fill := func(unit string) string { return strings.TrimSuffix(strings.Repeat(unit, n/len(unit)), ",") }
	object := func(more string) string {
		return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"` + more + `}`
	}
	list := func(kind, items string) string {
		return `{"kind":"` + kind + `List","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + items + `]}`
	}
	small := `{"metadata":{"name":"a","resourceVersion":"1"}},`
	for what, text := range map[string]string{
		"nested":         object(`},"spec":` + strings.Repeat(`[`, n/2) + strings.Repeat(`]`, n/2)),
		"nested objects": object(`},"spec":` + strings.Repeat(`{"":`, 9000) + "1" + strings.Repeat(`}`, 9000)),
		"labels":         object(`,"labels":{` + fill(`"a":"",`) + `}}`),
		"escaped labels": object(`,"labels":{` + fill(`"\n":"\u0000",`) + `}}`),
		"a long string":  object(`},"data":"` + fill(`\u00e9`) + `"`),
		"many items":     list("Pod", fill(small)),
		"a long kind":    list(fill("x"), fill(small)),
		"empty items":    list("Pod", fill(`{},`)),
		"rows":           tableHead + `[],"rows":[` + fill(`{"cells":[],"object":`+strings.TrimSuffix(small, ",")+`},`) + `]}`,
		"cells":          tableHead + `[` + fill("1,") + `],"rows":[{"cells":[` + fill("1,") + `],"object":` + pod + `}]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l, err := ParseList(text, "")
		if err == nil {
			_ = l.EmptyItem()
		}
		if f, err := ParseFrame(`{"type":"ADDED","object":` + text + "}"); err == nil {
			f.Detach("[]")
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > maxEach*uint64(len(text)) {
			t.Errorf("%s: %d bytes for a text of %d", what, took, len(text))
		}
	}
}
