// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
)

// BenchmarkBetween compares two versions of a Pod, of which a container was
// started again.
func BenchmarkBetween(b *testing.B) {
	text, err := json.Marshal(synthetic.Pod(7))
	if err != nil {
		b.Fatal(err)
	}
	before, err := scan.ParseObject(string(text))
	if err != nil {
		b.Fatal(err)
	}
	after, err := scan.ParseObject(strings.Replace(string(text), `"restartCount":`, `"restartCount":1`, 1))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c, err := new(Comparer).Between(before, after)
		if err != nil || c.OnlyNoise {
			b.Fatal(c, err)
		}
	}
}
