// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// BenchmarkObjectFrames reads events of objects of about 4.6 KB, as Tables and not.
func BenchmarkObjectFrames(b *testing.B) {
	plain := strings.Replace(script.Event("MODIFIED", "a", 2), `"spec":{}`, `"spec":{"env":[`+strings.Repeat(`{"name":"KEY","value":"a value of an environment variable"},`, 75)+`{}]}`, 1)
	for name, line := range map[string]string{"object": plain, "table": printed("null", plain)} {
		b.Run("as="+name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			frames := (&objectEncoding{}).watch(&repeated{line: line})
			for b.Loop() {
				if _, err := frames.next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeated is a line, again and again.
type repeated struct {
	line string
	at   int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], r.line[r.at:])
		n, r.at = n+k, (r.at+k)%len(r.line)
	}
	return n, nil
}
