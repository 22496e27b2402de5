// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
)

// A meter is a TCP proxy that counts the bytes that the server sends.
type meter struct {
	URL  string
	sent atomic.Int64
	stop func()
}

// step is the granularity of the count: the kernel forwards this many bytes at a time,
// without a copy.
const step = 4 << 10

func newMeter(address string) (*meter, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &meter{URL: "http://" + l.Addr().String(), stop: func() { l.Close() }}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go m.pass(client, address)
		}
	}()
	return m, nil
}

func (m *meter) pass(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client) // until the client disconnects
		server.Close()
	}()
	for {
		n, err := io.CopyN(client, server, step)
		m.sent.Add(n)
		if err != nil && !errors.Is(err, io.ErrShortWrite) {
			return
		}
	}
}
