// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// TestFormat1: a directory of format 1, whose program was killed, has what that program
// read from it, also after it has been opened for writing, which makes it format 2, and
// continued. scripts/format1 made it.
func TestFormat1(t *testing.T) {
	dir := t.TempDir()
	archive, err := zip.OpenReader("testdata/format1/history.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := os.CopyFS(dir, archive); err != nil {
		t.Fatal(err)
	}
	want := string(must(os.ReadFile("testdata/format1/history.txt")))
	before := files(t, vfs.Default, dir)
	heads := map[string]Moment{}
	for i, step := range []struct {
		opts   Options
		format int
	}{
		{Options{ReadOnly: true}, 1}, {Options{Cluster: "c1"}, 2}, {Options{Cluster: "c1"}, 2}, {Options{ReadOnly: true}, 2},
	} {
		s := must(Open(dir, step.opts))
		var id identity
		if found, err := s.getJSON([]byte{tableFormat}, &id); !found || err != nil || id.Format != step.format || id.Cluster != "c1" {
			t.Errorf("it is %+v, %v", id, err)
		}
		if diff := cmp.Diff(want, describe(t, s, heads)); diff != "" {
			t.Errorf("opening %d (-then +now)\n%s", i, diff)
		}
		if !step.opts.ReadOnly {
			st := must(s.Stream(pods))
			o, at := object("shop/a", uint64(1000+i), 5), time.Date(2025, 1, i, 0, 0, 0, 0, time.UTC)
			if err := st.AppendLate([]Event{{Type: kube.Modified, Object: o, At: at}}, o.RV, st.Head().At, at); err != nil {
				t.Fatal(err)
			}
			if got := must(st.Get(t.Context(), o.RV, o.Key)); got.JSON != o.JSON {
				t.Errorf("got %s, want %s", got.JSON, o.JSON)
			}
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, files(t, vfs.Default, dir)); step.format == 1 && diff != "" {
			t.Errorf("reading changed it (-before +after)\n%s", diff)
		}
	}
}

// describe returns what is in a store up to heads, which it adds to. The program in
// testdata/format1 has the same text.
func describe(t *testing.T, s *Store, heads map[string]Moment) string {
	t.Helper()
	var b strings.Builder
	for _, resource := range s.Resources() {
		for _, st := range s.Streams(resource) {
			span, form := st.Span(), st.Form()
			name := fmt.Sprint(resource, " ", st.Epoch())
			if head, ok := heads[name]; ok {
				span.To = head
			}
			heads[name] = span.To
			fmt.Fprintln(&b, "stream", name, span.From.RV, span.From.At.UnixMilli(), span.To.RV, span.To.At.UnixMilli())
			fmt.Fprintln(&b, "form", form.ListKind, form.Item.JSON, form.Item.Columns, form.Definition)
			for _, g := range st.Gaps() {
				if g.Since.Before(span.To.At) {
					fmt.Fprintln(&b, "gap", g.From, g.To, g.Since.UnixMilli(), g.Until.UnixMilli())
				}
			}
			for day := span.From.At.Add(-12 * time.Hour); day.Before(span.To.At); day = day.AddDate(0, 0, 3) {
				m, err := st.At(t.Context(), day)
				fmt.Fprintln(&b, "at", day.UnixMilli(), m.RV, err == nil)
				if err != nil {
					continue
				}
				for o, err := range st.List(t.Context(), m.RV, "", "") {
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprint(&b, " ", o.Key, " ", o.RV)
				}
				fmt.Fprintln(&b)
			}
			for o, err := range st.List(t.Context(), span.From.RV, "", "") {
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&b, "object", o.JSON, o.Row, o.Columns)
			}
			for e, err := range st.Events(t.Context(), span.From.RV, span.To.RV) {
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&b, e.Type, e.At.UnixMilli(), e.Inferred, e.Object.JSON, e.Object.Row, e.Object.Columns)
			}
		}
	}
	return b.String()
}

// TestPebbleFormat: a directory that a newer Pebble has opened is refused by earlier
// versions. If this fails after an upgrade of Pebble, say so in CHANGELOG.md and in
// docs/stability.md.
func TestPebbleFormat(t *testing.T) {
	const documented = 24
	if pebble.FormatNewest != documented {
		t.Errorf("Pebble's format is %d, docs/stability.md says %d", pebble.FormatNewest, documented)
	}
}

// TestRefusedUnchanged: a directory that is refused has the same files as before, also
// after a crash, when opening it for writing would flush its write-ahead log, and also
// if Pebble's own format is an older one, which that would replace.
func TestRefusedUnchanged(t *testing.T) {
	for name, test := range map[string]struct {
		format int
		open   Options
		want   error
	}{
		"another cluster":        {formatVersion, Options{Cluster: "d"}, ErrOtherCluster},
		"a newer format":         {formatVersion + 1, Options{Cluster: "c"}, ErrNewerFormat},
		"a newer format, unread": {formatVersion + 1, Options{}, ErrNewerFormat},
	} {
		disk := vfs.NewCrashableMem()
		db := must(pebble.Open("d", &pebble.Options{FS: disk, FormatMajorVersion: pebble.FormatMinSupported, Logger: &pebbleLog{log: testLog(io.Discard)}}))
		if err := db.Set([]byte{tableFormat}, must(json.Marshal(identity{Format: test.format, Cluster: "c"})), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		for state, disk := range map[string]*vfs.MemFS{"closed": disk, "crashed": crashed} {
			test.open.FS = disk
			before := files(t, disk, "d")
			if _, err := Open("d", test.open); !errors.Is(err, test.want) {
				t.Errorf("%s, %s: got %v", name, state, err)
			}
			if diff := cmp.Diff(before, files(t, disk, "d")); diff != "" {
				t.Errorf("%s, %s (-before +after)\n%s", name, state, diff)
			}
		}
	}
}

// files returns the content of each file in a directory.
func files(t *testing.T, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range must(fsys.List(dir)) {
		f := must(fsys.Open(fsys.PathJoin(dir, name)))
		all[name] = string(must(io.ReadAll(f)))
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
