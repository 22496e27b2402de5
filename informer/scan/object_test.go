// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u-1",` +
	`"resourceVersion":"42","labels":{"app":"x","tier":"b\u0065"},"annotations":{"n":"{\"a\":[1]}"}},` +
	`"spec":{"nodeName":"n1","hostNetwork":true,"containers":[{"name":"c"}]},"status":{"phase":"Running"}}`

const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","resourceVersion":"7"},"spec":{}}`

func TestParseObject(t *testing.T) {
	o, err := ParseObject(pod)
	if err != nil {
		t.Fatal(err)
	}
	if o.Key != "ns/a" || o.Key.Namespace() != "ns" || o.Key.Name() != "a" || o.UID != "u-1" || o.RV != 42 ||
		o.Kind != "Pod" || o.APIVersion != "v1" || !o.Typed() {
		t.Errorf("scanned %+v", o)
	}
	if !slices.Equal(Labels{{"app", "x"}, {"tier", "be"}}, o.Labels) {
		t.Errorf("labels %v", o.Labels)
	}
	brace, rest := o.ListItem()
	item := brace + rest
	if want := strings.Replace(pod, `"kind":"Pod","apiVersion":"v1",`, "", 1); item != want {
		t.Errorf("list item %s", item)
	}
	if at, want := o.At(1000), strings.Replace(pod, `"42"`, `"1000"`, 1); at.JSON != want || at.RV != 1000 || at.Key != o.Key {
		t.Errorf("at another RV: %+v", at)
	}

	w, err := ParseObject(widget)
	if err != nil {
		t.Fatal(err)
	}
	if brace, rest := w.ListItem(); w.Typed() || w.Key != "w" || w.Key.Namespace() != "" || brace+rest != widget {
		t.Errorf("scanned %+v", w)
	}
}

func TestParseFrame(t *testing.T) {
	for _, test := range []struct {
		text string
		want error
	}{
		{`{"type":"ADDED","object":` + pod + `}`, nil},
		{`{"object":` + pod + `,"type":"DELETED"}`, nil},
		{`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9"},"spec":{"containers":null}}}`, nil},
		{`{"type":"ERROR","object":{"kind":"Status","code":410}}`, nil},
		{`{"type":"ADDED","object":` + pod[:100], ErrSyntax},
		{`{"type":"ADDED","object":` + pod + `} x`, ErrSyntax},
		{`<html>bad gateway</html>`, ErrSyntax},
		{``, ErrSyntax},
		{"{\"type\":\"ADDED\",\"object\":{\"kind\":\"a\x00b\"}}", ErrSyntax},
		{`{"type":"ADDED"}`, ErrNotObject},
		{`{"type":"ADDED","object":{"metadata":{"name":"` + strings.Repeat("a", 1<<16) + `","resourceVersion":"5"}}}`, ErrNotObject},
		{`{"type":"NEWTYPE","object":` + pod + `}`, ErrNotObject},
		{`{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"x"}}}`, ErrNotObject},
		{`{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"x","resourceVersion":"abc"}}}`, ErrNotObject},
		{`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{}}}`, ErrNotObject},
		{strings.Repeat("[", 20000), ErrSyntax},
		{`{"a":` + strings.Repeat("[", 20000), ErrSyntax},
	} {
		_, err := ParseFrame(test.text)
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%.60q: %v, want %v", test.text, err, test.want)
		}
	}
}

func TestBookmarkObject(t *testing.T) {
	for _, test := range []struct {
		template, plain, end string
	}{
		{
			`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}`,
			`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"123"},"spec":{"containers":null},"status":{}}`,
			`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"123","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}`,
		}, {
			`{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"resourceVersion":"9","annotations":{"deprecated":"0","k8s.io/initial-events-end":"true"}},"spec":{}}`,
			`{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"resourceVersion":"123","annotations":{"deprecated":"0"}},"spec":{}}`,
			`{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"resourceVersion":"123","annotations":{"deprecated":"0","k8s.io/initial-events-end":"true"}},"spec":{}}`,
		}, {
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"9"}}`,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"123"}}`,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"123"}}`,
		},
	} {
		f, err := ParseFrame(`{"type":"BOOKMARK","object":` + test.template + `}`)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := f.InitialEventsEnd(), strings.Contains(test.template, "initial-events-end"); got != want {
			t.Errorf("InitialEventsEnd of %s is %v", test.template, got)
		}
		if got := BookmarkObject(f.Object, 123, false); got.JSON != test.plain || got.RV != 123 || got.InitialEventsEnd() {
			t.Errorf("got  %s\nwant %s", got.JSON, test.plain)
		}
		end := BookmarkObject(f.Object, 123, true)
		if end.JSON != test.end || !end.InitialEventsEnd() {
			t.Errorf("got  %s\nwant %s", end.JSON, test.end)
		}
	}
}

func TestParseList(t *testing.T) {
	bare := strings.Replace(pod, `"kind":"Pod","apiVersion":"v1",`, "", 1)
	l, err := ParseList(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"50","continue":"tok"},"items":[`+bare+`]}`+"\n", "")
	if err != nil {
		t.Fatal(err)
	}
	if !l.Typed || l.RV != 50 || l.Continue != "tok" || l.ItemKind != "Pod" || len(l.Items) != 1 || l.Items[0].JSON != pod {
		t.Errorf("typed list: %+v", l)
	}
	if got := l.EmptyItem().JSON; got != `{"kind":"Pod","apiVersion":"v1","metadata":{}}` {
		t.Errorf("EmptyItem: %s", got)
	}
	l, err = ParseList(`{"apiVersion":"example.com/v1","items":[`+widget+`],"kind":"WidgetCollection","metadata":{"continue":"","resourceVersion":"8"}}`, "Widget")
	if err != nil {
		t.Fatal(err)
	}
	if l.Typed || l.ItemKind != "Widget" || l.Items[0].JSON != widget {
		t.Errorf("custom list: %+v", l)
	}
	for _, bad := range []string{`{"kind":"Status","metadata":{}}`, `{"kind":"PodList","metadata":{"resourceVersion":""},"items":[]}`, `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{}]}`, `{`, `not json`} {
		if l, err := ParseList(bad, ""); err == nil {
			t.Errorf("%s gave %+v", bad, l)
		}
	}
}

func BenchmarkParseFrame(b *testing.B) {
	text := `{"type":"MODIFIED","object":` + strings.Replace(pod, `"spec":{`, `"spec":{"env":[`+strings.Repeat(`{"name":"KEY","value":"some value of an environment variable"},`, 60)+`{}],`, 1) + `}`
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseFrame(text); err != nil {
			b.Fatal(err)
		}
	}
}
