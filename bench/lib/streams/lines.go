// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bytes"
	"sync/atomic"
	"time"
)

// headSize is the length of the part of a line in which its resourceVersion is looked
// up. In an event it follows kind, apiVersion, name, namespace and uid.
const headSize = 640

// lines counts the lines of a body. Its zero value counts.
type lines struct {
	events  atomic.Int64
	observe func(rv uint64, at time.Time) // nil to count only
	at      func() time.Time              // when the bytes arrived; only with observe
	head    []byte                        // of the current line
}

func (l *lines) data(p []byte) {
	if l.observe == nil {
		if n := bytes.Count(p, []byte{'\n'}); n > 0 {
			l.events.Add(int64(n))
		}
		return
	}
	for {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		l.head = append(l.head, part[:min(len(part), headSize-len(l.head))]...)
		if !ended {
			return
		}
		l.events.Add(1)
		l.observe(findRV(l.head), l.at())
		l.head, p = l.head[:0], rest
	}
}

// findRV returns the first resourceVersion in a line, 0 if there is none.
func findRV(line []byte) (rv uint64) {
	_, after, _ := bytes.Cut(line, []byte(`"resourceVersion":"`))
	for _, c := range after {
		if c < '0' || c > '9' {
			break
		}
		rv = rv*10 + uint64(c-'0')
	}
	return rv
}
