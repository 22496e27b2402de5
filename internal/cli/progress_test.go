// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress: a file that takes long to be unpacked is reported on, one that does not is not.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		p := &progress{Reader: strings.NewReader(strings.Repeat("x", 400)), size: 400, last: time.Now(), report: func(s string) { lines = append(lines, s) }}
		for range 4 {
			if _, err := io.ReadFull(p, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(progressEvery / 2)
		}
		if got := strings.Join(lines, "|"); got != "unpacking: 200 bytes of 400 bytes, 50%" {
			t.Error(got)
		}
	})
}
