// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import (
	"net"
	"sync"
)

// Listener returns a listener whose connections can write TLS records together: TLS
// makes a system call for each.
func Listener(l net.Listener) net.Listener { return gatherListener{l} }

type gatherListener struct{ net.Listener }

func (l gatherListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatherConn{Conn: conn}, nil
}

// A gatherConn collects what is written between begin and flush.
type gatherConn struct {
	net.Conn

	mu      sync.Mutex // guards the field below
	records []byte     // nil outside of begin and flush
}

var recordBuffers = sync.Pool{New: func() any { b := make([]byte, 0, maxBatch+maxTurn+2*maxFrameSize); return &b }}

// Write implements net.Conn. TLS may also write while it reads.
func (c *gatherConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.records == nil {
		return c.Conn.Write(p)
	}
	c.records = append(c.records, p...)
	return len(p), nil
}

func (c *gatherConn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = *recordBuffers.Get().(*[]byte)
}

// flush writes what was collected, unless the caller has failed to write it.
func (c *gatherConn) flush(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	records := c.records
	c.records = nil
	if err == nil {
		_, err = c.Conn.Write(records)
	}
	records = records[:0]
	recordBuffers.Put(&records)
	return err
}
