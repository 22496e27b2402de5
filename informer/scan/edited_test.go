// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

const managedPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u-1","resourceVersion":"99",` +
	`"labels":{"app":"x"},"annotations":{"n":"{\"time\":\"10:00\"}"},` +
	`"managedFields":[{"manager":"kubelet","time":"2026-11-26T10:00:00Z","fieldsV1":{"f:status":{"k:{\"type\":\"Ready\"}":{".":{}}}}}]},` +
	`"spec":{"nodeName":"n1","containers":[{"name":"c","args":["a\\","b\nc"]}]},` +
	`"status":{"phase":"Running","message":"back-off 10s","restarts":9,"ready":true,"startTime":"2026-11-26T10:00:00Z"}}`

const managedWidget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"a":"b"},"generation":3,"labels":{"app":"x","b":"c"},` +
	`"managedFields":[{"time":"2026-11-26T10:00:00Z"}],"name":"w","resourceVersion":"7","uid":"u-2"},"spec":{"size":12},"status":{"at":"10:00"}}`

// edit applies edits to a text.
func edit(text string, edits []Edit) string {
	var b strings.Builder
	end := 0
	for _, e := range edits {
		b.WriteString(text[end:e.From] + e.Text)
		end = e.To
	}
	return b.String() + text[end:]
}

// checkEdited fails if the object that edits make differs from the one in its text, or
// refers to the text before. It reports whether there is one.
func checkEdited(t *testing.T, before string, edits []Edit) bool {
	t.Helper()
	after := edit(before, edits)
	o, err := ParseObject(before)
	if err != nil {
		return false
	}
	want, err := ParseObject(after)
	if err != nil {
		return false // such a text is not stored
	}
	got := o.Edited(after, edits)
	if got == nil {
		return false
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v\nof %s\nmake %+v\nwant %+v", edits, before, got, want)
	}
	for _, l := range append(got.Labels, Label{got.UID, got.Kind}, Label{got.APIVersion, string(got.Key)}) {
		for _, s := range []string{l.Key, l.Value} {
			if _, within := o.offset(s); within {
				t.Fatalf("%q is a part of the text before", s)
			}
		}
	}
	return true
}

func TestEdited(t *testing.T) {
	for _, test := range []struct {
		text    string
		replace []string // pairs, in the order of the text
		edited  bool
	}{
		{managedPod, []string{`99`, `100`}, true},
		{managedPod, []string{`99`, `100`, `11-26T10:00:00Z","f`, `12-01T09:10:00Z","f`}, false}, // a quote
		{managedPod, []string{`99`, `100`, `26T10:00`, `27T11:30`, `Running`, `Failed`, `10s`, `5m0s`, `9`, `12`, `true`, `false`}, true},
		{managedPod, []string{`startTime`, `startTim`}, false}, // the name of a member
		{managedPod, []string{`u-1`, `u-2`}, false},
		{managedPod, []string{`"name":"a"`, `"name":"b"`}, false},
		{managedPod, []string{`10:00\`, `11:00\`}, false}, // an annotation
		{managedPod, []string{`"x"`, `"y"`}, false},
		{managedPod, []string{`v1`, `v2`}, false},
		{managedPod, []string{`nc"`, `c"`}, false}, // an escape
		{managedPod, []string{`n1`, `node-1`}, true},
		{managedWidget, []string{`T10:00:00`, `T10:30:00`, `7`, `1000`, `12`, `3`, `10:00`, `11:00`}, true},
		{managedWidget, []string{`3`, `4`}, false}, // a generation
		{managedWidget, []string{`Widget`, `Gadget`}, false},
		{managedWidget, []string{`u-2`, `u-3`}, false},
	} {
		var edits []Edit
		from := 0
		for i := 0; i < len(test.replace); i += 2 {
			old, text := test.replace[i], test.replace[i+1]
			at := strings.Index(test.text[from:], old) + from
			if at < from {
				t.Fatalf("no %q", old)
			}
			for old != "" && text != "" && old[0] == text[0] { // as in a delta
				old, text, at = old[1:], text[1:], at+1
			}
			edits = append(edits, Edit{at, at + len(old), text})
			from = at + len(old)
		}
		if got := checkEdited(t, test.text, edits); got != test.edited {
			t.Errorf("%q: edited %v, want %v", test.replace, got, test.edited)
		}
	}
}

// TestEditedAtRandom makes edits everywhere, of which few leave the structure as it is.
func TestEditedAtRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	words := []string{"", "1", "10:00", "x", "true", `"`, `\`, `","a":"b`, "{}", "[", ",", ":", `\"`, `n`, `u0041`, " "}
	edited := 0
	for range 300_000 {
		text := managedPod
		if rnd.IntN(3) == 0 {
			text = managedWidget
		}
		var edits []Edit
		for from := 0; len(edits) < 3; {
			at := from + rnd.IntN(len(text)-from)
			e := Edit{at, min(at+rnd.IntN(4), len(text)), words[rnd.IntN(len(words))]}
			edits, from = append(edits, e), e.To
			if rnd.IntN(2) == 0 || from == len(text) {
				break
			}
		}
		if checkEdited(t, text, edits) {
			edited++
		}
	}
	if edited < 1000 {
		t.Errorf("only %d edits left the structure as it is", edited)
	}
}

// FuzzEdited: the object that edits make is the one in their text.
func FuzzEdited(f *testing.F) {
	for _, text := range []string{pod, widget, managedPod, managedWidget} {
		f.Add(text, 300, 2, "11", 120, 1, "x")
		f.Add(text, 98, 1, "12", len(text)-30, 0, "")
	}
	f.Fuzz(func(t *testing.T, text string, at, n int, by string, skip, m int, then string) {
		within := func(i, low int) int { return max(low, min(i, len(text))) }
		first := Edit{From: within(at, 0), Text: by}
		first.To = within(first.From+min(max(n, 0), 1<<20), first.From)
		second := Edit{From: within(first.To+1+min(max(skip, 0), 1<<20), first.To), Text: then}
		second.To = within(second.From+min(max(m, 0), 1<<20), second.From)
		checkEdited(t, text, []Edit{first, second})
	})
}

// TestObjectSize: a gateway keeps many objects.
func TestObjectSize(t *testing.T) {
	if size := unsafe.Sizeof(Object{}); size > 192 {
		t.Errorf("an Object has %d bytes, besides its text", size)
	}
}

func BenchmarkEdited(b *testing.B) {
	o, err := ParseObject(managedPod)
	if err != nil {
		b.Fatal(err)
	}
	at := strings.Index(managedPod, "Running")
	edits := []Edit{{strings.Index(managedPod, "99"), strings.Index(managedPod, "99") + 2, "100"}, {at, at + 7, "Failed"}}
	after := edit(managedPod, edits)
	b.Run("edited", func(b *testing.B) {
		for b.Loop() {
			if o.Edited(after, edits) == nil {
				b.Fatal("not edited")
			}
		}
	})
	b.Run("parsed", func(b *testing.B) {
		for b.Loop() {
			if _, err := ParseObject(after); err != nil {
				b.Fatal(err)
			}
		}
	})
}
