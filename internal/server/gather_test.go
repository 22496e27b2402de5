// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// gathering returns a connection that gathers, with its other end.
func gathering(t *testing.T) (*gatherListener, *gatherConn, *net.TCPConn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	l := &gatherListener{Listener: inner}
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := conn.(*gatherConn)
	c.gathers.Store(true)
	t.Cleanup(func() {
		c.Close()
		client.Close()
		l.flushing.Wait()
	})
	_ = client.SetDeadline(time.Now().Add(time.Minute))
	return l, c, client.(*net.TCPConn)
}

// TestGatherKeepsOrder: all writes arrive in order, with and without pauses of the
// writer and of the client. The last one arrives although the connection is
// closed at once.
func TestGatherKeepsOrder(t *testing.T) {
	l, c, client := gathering(t)
	const writes = 3000
	// Close limits the time of waiting writes. The socket buffers have room for the last
	// ten, so that these do not wait for the client.
	const last = writes - 10
	near := make(chan struct{}) // closed when the client has read all others
	go func() {
		for i := range uint32(writes) {
			if i == last {
				<-near
			}
			p := bytes.Repeat([]byte{byte(i)}, 4+int(i%5000))
			binary.BigEndian.PutUint32(p, i)
			if n, err := c.Write(p); n != len(p) || err != nil {
				t.Error(n, err)
			}
			clear(p) // it is the caller's again
			if i%100 == 0 {
				time.Sleep(2 * gatherSoon)
			}
		}
		_ = c.SetWriteDeadline(time.Now()) // as tls does
		c.Close()
	}()
	for i := range uint32(writes) {
		if i == last {
			close(near)
		}
		p := make([]byte, 4+int(i%5000))
		if _, err := io.ReadFull(client, p); err != nil {
			t.Fatal(i, err)
		}
		if binary.BigEndian.Uint32(p) != i || !bytes.Equal(p[4:], bytes.Repeat([]byte{byte(i)}, len(p)-4)) {
			t.Fatalf("%.10x as number %d", p, i)
		}
		if i == 100 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if n, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Error(n, err)
	}
	l.flushing.Wait()
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("written after the end")
	}
}

// TestGatherIsBounded: the bytes that wait for a client that does not read are
// limited. Close does not wait for it, and reads end at once.
func TestGatherIsBounded(t *testing.T) {
	l, c, _ := gathering(t)
	p := make([]byte, 16<<10)
	ended := make(chan error)
	go func() {
		for {
			c.mu.Lock()
			waits := len(c.waits)
			c.mu.Unlock()
			if waits > maxGathered+len(p) {
				t.Errorf("%d bytes wait", waits)
			}
			if _, err := c.Write(p); err != nil {
				ended <- err
				return
			}
		}
	}()
	stuck := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.room != nil
	}
	for !stuck() {
		time.Sleep(time.Millisecond)
	}
	_ = c.Conn.SetWriteDeadline(time.Now()) // the time that it has is over
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	c.Close()
	if _, err := c.Read(p); err == nil {
		t.Error("read after the end")
	}
	l.flushing.Wait()
}

// TestGatherReportsErrors: a later write reports that the client is gone.
func TestGatherReportsErrors(t *testing.T) {
	_, c, client := gathering(t)
	_ = client.SetLinger(0)
	client.Close()
	for {
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			break
		}
	}
}
