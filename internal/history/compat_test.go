// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

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
		if err := db.Set([]byte{tableFormat}, must(json.Marshal(identity{test.format, "c"})), pebble.Sync); err != nil {
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
