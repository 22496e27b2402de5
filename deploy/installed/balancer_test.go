// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// A balancer is a Service: each new connection goes to the next of its endpoints.
// Connections to an endpoint that is removed go on, as with kube-proxy.
type balancer struct {
	listener net.Listener

	mu        sync.Mutex // guards the fields below
	endpoints []string
	next      int
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{listener: listener}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
	return b
}

func (b *balancer) url() string { return "https://" + b.listener.Addr().String() }

func (b *balancer) add(endpoint string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints = append(b.endpoints, endpoint)
}

func (b *balancer) remove(endpoint string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints = slices.DeleteFunc(b.endpoints, func(e string) bool { return e == endpoint })
}

func (b *balancer) serve(client net.Conn) {
	defer client.Close()
	b.mu.Lock()
	endpoint := b.endpoints[b.next%len(b.endpoints)]
	b.next++
	b.mu.Unlock()
	server, err := net.Dial("tcp", endpoint)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		io.Copy(server, client)            //nolint:errcheck // one of them has closed
		server.(*net.TCPConn).CloseWrite() //nolint:errcheck // as above
	}()
	io.Copy(client, server) //nolint:errcheck // as above
}
