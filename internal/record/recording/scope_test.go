// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// TestScope: the header says what was selected; with pseudonyms, without any real name.
func TestScope(t *testing.T) {
	s := openStore(t)
	fill(t, s)
	app, err := labels.Parse("app=shop")
	if err != nil {
		t.Fatal(err)
	}
	header := func(change func(*Selection)) *Header {
		t.Helper()
		sel := everything()
		change(&sel)
		sum, err := Check(t.Context(), bytes.NewReader(export(t, s, sel)))
		if err != nil {
			t.Fatal(err)
		}
		return &sum.Header
	}
	text := func(h *Header) string {
		b, err := json.Marshal(h.Scope)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for want, change := range map[string]func(*Selection){
		`null`:                 func(*Selection) {},
		`{"namespace":"team"}`: func(sel *Selection) { sel.Namespace = "team" },
		`{"selected":true,"labelSelector":"app=shop"}`: func(sel *Selection) { sel.Labels = app },
		`{"denied":["secrets"]}`:                       func(sel *Selection) { sel.Denied = []string{"secrets"} },
		`{"resources":["pods"]}`:                       func(sel *Selection) { sel.Resources, sel.Named = []kube.Resource{pods}, true },
		// Of a recording that is limited itself.
		`{"namespace":"team","selected":true}`: func(sel *Selection) { sel.Within = &Scope{Namespace: "team", Selected: true} },
		`{"namespace":"team","selected":true,"labelSelector":"tier=web,app=shop","denied":["secrets","nodes"]}`: func(sel *Selection) {
			sel.Within, sel.Labels, sel.Denied = &Scope{Namespace: "team", Selected: true, LabelSelector: "tier=web", Denied: []string{"secrets"}}, app, []string{"nodes"}
		},
		`{"selected":true,"resources":["pods"]}`: func(sel *Selection) { // names were replaced
			sel.Within, sel.Labels, sel.Resources, sel.Named = &Scope{Selected: true}, app, []kube.Resource{pods}, true
		},
	} {
		if got := text(header(change)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	h := header(func(sel *Selection) { sel.Namespace, sel.Labels, sel.Pseudonyms = "team", app, true })
	if only := h.Scope.Namespace; only == "" || only == "team" || !h.Scope.Selected || h.Scope.LabelSelector != "" {
		t.Errorf("with pseudonyms: %s", text(h))
	}
	within := Scope{Namespace: "team", Selected: true, LabelSelector: "tier=web"}
	of := within
	header(func(sel *Selection) { sel.Within, sel.Pseudonyms = &of, true })
	if !reflect.DeepEqual(of, within) {
		t.Errorf("the scope of the recording that was exported has become %+v", of)
	}
}

// TestRange: the header has the asked range, and so has each resource, although the first state is
// older and nothing changed before the end, as far as the state is known. In an opened recording, all
// of it can be read. After that, nothing is known.
func TestRange(t *testing.T) {
	from := openStore(t)
	fill(t, from)
	for _, test := range []struct{ from, to, known, wantFrom, wantTo uint64 }{
		{13, 14, 0, 13, 14},
		{0, 1000, 0, 10, 40},
		{35, 37, 0, 35, 37},
		{12, 20, 0, 12, 15}, // 20 is in a gap that begins at 15
		{0, 1000, 70, 10, 70},
		{50, 60, 70, 50, 60},
		{50, 80, 70, 50, 70},
		{50, 60, 0, 0, 0},
		{75, 80, 70, 0, 0},
	} {
		sel := everything()
		sel.From, sel.To = at(test.from), at(test.to)
		if test.known > 0 {
			sel.Known = func(kube.Resource) time.Time { return at(test.known) }
		}
		if test.wantTo == 0 {
			if err := exporter(from).Export(t.Context(), io.Discard, sel); !errors.Is(err, ErrNothing) {
				t.Errorf("%d to %d: %v", test.from, test.to, err)
			}
			continue
		}
		file := export(t, from, sel)
		to := openStore(t)
		h, _, err := Import(t.Context(), bytes.NewReader(file), to, 0)
		if err != nil {
			t.Fatal(err)
		}
		if span := to.Streams(pods)[0].Span(); !h.From.Equal(at(test.wantFrom)) || !h.To.Equal(at(test.wantTo)) || !span.From.At.Equal(h.From) || !span.To.At.Equal(h.To) {
			t.Errorf("%d to %d: %v to %v, pods are from %v to %v", test.from, test.to, h.From, h.To, span.From.At, span.To.At)
		}
	}
}
