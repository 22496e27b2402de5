// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"bufio"
	"strings"
	"testing"
)

// TestReadLine: readLine bounds the memory for a line of the upstream.
func TestReadLine(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader("one\n"+strings.Repeat("x", 100)+"\n"+strings.Repeat("y", 1000)+"\n"), 16)
	for _, want := range []string{"one", strings.Repeat("x", 100)} {
		if got, err := readLine(in, 200); got != want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := readLine(in, 200); err == nil {
		t.Errorf("a line of %d bytes", len(got))
	}
}
