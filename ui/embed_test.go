// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/ui"
)

// most is how large the whole page may be, as it is sent to a browser that knows
// gzip.
const most = 120_000

// TestSize is of the page that is built, if it is.
func TestSize(t *testing.T) {
	sizes := map[string]int64{}
	err := fs.WalkDir(ui.Files(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sizes[name] = info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for name, size := range sizes {
		if strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".br") {
			continue
		}
		if gz, ok := sizes[name+".gz"]; ok {
			size = gz
		} else if strings.HasSuffix(name, ".js") {
			t.Errorf("%s is not compressed", name)
		}
		total += size
	}
	t.Logf("%d bytes of at most %d", total, most)
	if total > most {
		t.Errorf("the page is %d bytes, more than %d", total, most)
	}
}
