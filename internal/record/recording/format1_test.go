// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFormat1: a recording of an early program has what that program read from it.
// scripts/format1 made it.
func TestFormat1(t *testing.T) {
	want, err := os.ReadFile("testdata/format1/export.txt")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("testdata/format1/export.wkr")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := openStore(t)
	h, documents, err := Import(t.Context(), f, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(h.Format, h.Program, h.Cluster, h.From.UnixMilli(), h.To.UnixMilli(), documents[0].Path, documents[0].Type, string(documents[0].Body)) + story(t, s)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-then +now\n%s", diff)
	}
}
