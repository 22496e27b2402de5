// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// The time of bytes is that of their arrival, not of the Read, however late that is.
func TestStamp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	c, at, err := stamp(to.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	// The kernel begins to note times a moment after it was asked.
	for start := time.Now(); ; {
		before := time.Now()
		if _, err := io.WriteString(from, "an event"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // on loopback it has arrived long before
		after := time.Now()
		var p [20]byte
		if n, err := c.Read(p[:]); err != nil || string(p[:n]) != "an event" {
			t.Fatalf("%q, %v", p[:n], err)
		}
		if at().After(before) && at().Before(after) {
			break
		}
		if time.Since(start) > 10*time.Second {
			t.Fatalf("written between %v and %v, arrived at %v", before, after, at())
		}
	}
	from.Close()
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d, %v", n, err)
	}
	c.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
