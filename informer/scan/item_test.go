// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const managed = `"managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]`

func TestItemEvent(t *testing.T) {
	for _, test := range []struct{ text, trimmed string }{
		{pod, pod},
		{strings.Replace(pod, `"annotations"`, managed+`,"annotations"`, 1), pod},
		{strings.Replace(pod, `"name":"a"`, managed+`,"name":"a"`, 1), pod},
		{strings.Replace(pod, `{"n":"{\"a\":[1]}"}`, `{"n":"{\"a\":[1]}"},`+managed, 1), pod},
		{strings.Replace(pod, `"name":"a"`, `"managedFields": [] , "name":"a"`, 1), strings.Replace(pod, `"name":"a"`, `"managedFields": [] , "name":"a"`, 1)},
	} {
		var e ItemEvent
		if err := e.Scan([]byte(`{"type":"ADDED","object":` + test.text + `}`)); err != nil {
			t.Fatal(err)
		}
		it := &e.Item
		if key := string(it.AppendKey(nil)); e.Type != kube.Added || key != "ns/a" || it.UID != "u-1" || it.RV != 42 || it.InitialEventsEnd() {
			t.Errorf("%s %q: %+v", e.Type, key, it)
		}
		if got := string(it.Append(nil, false)); got != test.trimmed || len(got) != it.Size(false) {
			t.Errorf("trimmed (Size is %d)\n%s\nwant\n%s", it.Size(false), got, test.trimmed)
		}
		if got := string(it.Append(nil, true)); got != test.text || len(got) != it.Size(true) {
			t.Errorf("%s, want %s", got, test.text)
		}
	}
	for key, want := range map[string]string{"app": "x", "tier": "be", "none": ""} {
		if v, ok := ItemLabel([]byte(pod), key); v != want || ok != (want != "") {
			t.Errorf("label %s: %q, %v", key, v, ok)
		}
	}
}

func TestItemEventOfOtherTypes(t *testing.T) {
	var e ItemEvent
	end := `{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	if err := e.Scan([]byte(end)); err != nil || e.Type != kube.Bookmark || e.Item.RV != 9 || !e.Item.InitialEventsEnd() {
		t.Errorf("%v %+v", err, e)
	}
	if err := e.Scan([]byte(`{"type":"ERROR","object":{"kind":"Status","code":410}}`)); err != nil || string(e.Status) != `{"kind":"Status","code":410}` {
		t.Errorf("%v %s", err, e.Status)
	}
	for text, want := range map[string]error{
		`{"type":"ADDED"}`:                                    ErrNotObject,
		`{"type":"NEW","object":` + pod + `}`:                 ErrNotObject,
		`{"type":"ADDED","object":{"metadata":{"name":"a"}}}`: ErrNotObject,
		`{"type":"ADDED","object":{"metadata":{"name":"` + strings.Repeat("a", 1<<16) + `","resourceVersion":"5"}}}`: ErrNotObject,
		`{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"x"}}}`:                                  ErrNotObject,
		`{"type":"ADDED","object":` + pod[:80]:                                                                       ErrSyntax,
		`{"type":"BOOKMARK","object":{"metadata":{}}}`:                                                               ErrNotObject,
	} {
		if err := e.Scan([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// items reads a list in pieces of several sizes, with equal results.
func items(t *testing.T, text string) (items []string, head List, err error) {
	t.Helper()
	like := &List{Kind: "PodList", APIVersion: "v1", ItemKind: "Pod", Typed: strings.HasPrefix(text, `{"kind"`)}
	for _, in := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
		for _, size := range []int{listBuffer, 1, 50} {
			if r, ok := in.(io.Seeker); ok {
				_, _ = r.Seek(0, io.SeekStart)
			} else if size != listBuffer {
				continue
			}
			r := NewItemReader(in, like)
			r.buf = make([]byte, size)
			var got []string
			var it Item
			ok, e := r.Next(&it)
			for ; ok && e == nil; ok, e = r.Next(&it) {
				got = append(got, string(it.Append(nil, false)))
			}
			if items != nil && (!slices.Equal(items, got) || (e == nil) != (err == nil)) {
				t.Fatalf("with other pieces: %q %v, %q %v", items, err, got, e)
			}
			items, head, err = append([]string{}, got...), *r.List(), e
		}
	}
	return items, head, err
}

func TestItemReader(t *testing.T) {
	bare := strings.Replace(pod, `"kind":"Pod","apiVersion":"v1",`, "", 1)
	got, head, err := items(t, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"77","continue":"c"},"items":[`+
		strings.Replace(bare, `"annotations"`, managed+`,"annotations"`, 1)+`,`+bare+`]}`+"\n")
	if err != nil || !reflect.DeepEqual(got, []string{pod, pod}) || head.RV != 77 || head.Continue != "c" {
		t.Errorf("%q, %+v, %v", got, head, err)
	}
	custom := strings.Replace(pod, `"kind":"Pod","apiVersion":"v1",`, `"apiVersion":"v1","kind":"Pod",`, 1)
	got, head, err = items(t, ` {"apiVersion":"v1","items":[`+custom+`, `+custom+` ],"kind":"PodList","metadata":{"resourceVersion":"78"},"more":123 }`)
	if err != nil || !reflect.DeepEqual(got, []string{custom, custom}) || head.RV != 78 || head.Continue != "" {
		t.Errorf("%q, %+v, %v", got, head, err)
	}
	got, head, err = items(t, `{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":null}`)
	if err != nil || len(got) > 0 || head.RV != 5 {
		t.Errorf("%q, %+v, %v", got, head, err)
	}
	for text, want := range map[string]error{
		`{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[` + bare:       ErrSyntax,
		`{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[` + bare + `x`: ErrSyntax,
		`{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[]}}`:           ErrSyntax,
		`{"kind":"PodList","metadata":{"resourceVersion":"5"}`:                        ErrSyntax,
		`{"kind":"PodList","metadata":{},"items":[]}`:                                 ErrNotObject,
		`{"metadata":{"resourceVersion":"5"},"items":[]}`:                             ErrNotObject,
		`{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[{}]}`:          ErrNotObject,
		``: ErrSyntax,
	} {
		if _, _, err := items(t, text); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// FuzzItem compares items with objects, and ItemReader with ParseList.
func FuzzItem(f *testing.F) {
	bare := strings.Replace(pod, `"kind":"Pod","apiVersion":"v1",`, "", 1)
	f.Add(`{"type":"ADDED","object":`+pod+`}`, 30)
	f.Add(`{"type":"ADDED","object":`+widget+`}`, 30)
	f.Add(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"77"},"items":[`+bare+`,`+bare+`]}`, 30)
	f.Fuzz(func(t *testing.T, text string, buffer int) {
		var e ItemEvent
		frame, want := ParseFrame(text)
		err := e.Scan([]byte(text))
		if want == nil && frame.Type != kube.Error && frame.Object.Columns == "" && frame.Object.Row == "" {
			if o := frame.Object; err != nil || string(e.Item.AppendKey(nil)) != string(o.Key) || e.Item.UID != o.UID || e.Item.RV != o.RV ||
				string(e.Item.Append(nil, true)) != o.JSON || frame.InitialEventsEnd() != e.Item.InitialEventsEnd() {
				t.Fatalf("%+v of %+v, %v", e, o, err)
			}
			trimmed, err := ParseObject(string(e.Item.Append(nil, false)))
			if o := frame.Object; frame.Type != kube.Bookmark && (err != nil || trimmed.Key != o.Key || trimmed.UID != o.UID || trimmed.RV != o.RV) {
				t.Fatalf("trimmed %+v, %v", trimmed, err)
			}
		}
		list, want := ParseList(text, "Pod")
		if want != nil || list.table() || list.Kind == "" {
			return
		}
		r := NewItemReader(strings.NewReader(text), list)
		r.buf = make([]byte, 1+buffer&0xff)
		var it Item
		var got []Item
		ok, err := r.Next(&it)
		for ; ok && err == nil; ok, err = r.Next(&it) {
			copied := it
			copied.Name, copied.UID = strings.Clone(it.Name), strings.Clone(it.UID)
			got = append(got, copied)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(got) < len(list.Items) || r.List().RV != list.RV || r.List().Continue != list.Continue {
			t.Fatalf("%d items, want %d; %+v", len(got), len(list.Items), r.List())
		}
		// Of several members "items" the last counts; ItemReader returns the items
		// of all.
		got = got[len(got)-len(list.Items):]
		for i, o := range list.Items {
			if got[i].Name != o.Key.Name() || got[i].UID != o.UID || got[i].RV != o.RV {
				t.Fatalf("item %d: %+v, want %+v", i, got[i], o)
			}
		}
	})
}
