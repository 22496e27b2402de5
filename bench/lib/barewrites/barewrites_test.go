// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package barewrites

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// size is not a divisor of a record's, and a connection's events are more than a batch.
const size = 4001

// The server's process is this program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "serve") {
		if err := Serve(size, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Every watch gets every event, over both protocols, and a client that goes does not
// disturb the others.
func TestEvents(t *testing.T) {
	p, err := StartSelf("serve")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	for _, target := range []streams.Target{p.HTTP1, p.HTTP2} {
		t.Run(string(target.Protocol), func(t *testing.T) {
			open := func(n int) *streams.Set {
				set, err := streams.Open(t.Context(), target, streams.Options{Paths: slices.Repeat([]string{"/watch"}, n), PerConnection: 100})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(set.Close)
				return set
			}
			set, other := open(250), open(20)
			events := func(n int) {
				if err := p.Events(n); err != nil {
					t.Fatal(err)
				}
			}
			events(3)
			if _, err := other.WaitEach(3, 10*time.Second); err != nil {
				t.Fatal(err)
			}
			other.Close()
			events(4)
			if _, err := set.WaitEach(7, 10*time.Second); err != nil {
				t.Fatal(err)
			}
		})
	}
}
