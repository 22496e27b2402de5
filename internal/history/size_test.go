// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"slices"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestCompact: compaction moves all tables to the lowest level and keeps the content; it
// fails on a closed store.
func TestCompact(t *testing.T) {
	s := must(Open(t.TempDir(), Options{Cluster: "c"}))
	st := must(s.Stream(pods))
	if err := st.Begin(podForm, slices.Values([]*scan.Object(nil)), 100, ms(100_000)); err != nil {
		t.Fatal(err)
	}
	var prev *scan.Object
	for rv := uint64(101); rv <= 300; rv++ {
		e := Event{Type: kube.Modified, Object: object("ns/a", rv, 500), Prev: prev, At: ms(rv * 1000)}
		if prev == nil {
			e.Type = kube.Added
		}
		if err := st.Append([]Event{e}, rv, e.At); err != nil {
			t.Fatal(err)
		}
		prev = e.Object
	}
	read := func() (texts []string) {
		for e, err := range st.Events(t.Context(), 100, 300) {
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, e.Object.JSON+e.Object.Row)
		}
		return texts
	}
	before := read()
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := read(); len(after) != 200 || !slices.Equal(after, before) {
		t.Errorf("%d events after, which differ from the %d before", len(after), len(before))
	}
	levels := s.db.Metrics().Levels
	for i, l := range levels {
		if bottom := i == len(levels)-1; bottom != (l.TablesSize > 0) {
			t.Errorf("%d bytes in level %d", l.TablesSize, i)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Compact(ended); err == nil {
		t.Error("no error with a canceled context")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(t.Context()); err == nil {
		t.Error("no error with a closed store")
	}
}
