// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/ui"
)

// maxSize is the size limit, with gzip, of what the page loads at first.
const maxSize = 120_000

// TestSize checks the size of the page if it is built.
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
	index, err := fs.ReadFile(ui.Files(), "index.html") // has the chunks that are loaded at first
	if err != nil && len(sizes) > 1 {
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
		if base := path.Base(name); strings.HasPrefix(base, "later-") && !strings.Contains(string(index), base) {
			t.Logf("%s, loaded later: %d bytes", name, size)
			continue
		}
		total += size
	}
	t.Logf("%d bytes of at most %d", total, maxSize)
	if total > maxSize {
		t.Errorf("the page is %d bytes, more than %d", total, maxSize)
	}
}
