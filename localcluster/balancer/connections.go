// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"errors"
	"io"
	"net"
	"sync"
)

// accept forwards connections until the listener is closed.
func (b *Balancer) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				b.log.Print(err)
			}
			return
		}
		b.running.Go(func() { b.forward(client) })
	}
}

func (b *Balancer) forward(client net.Conn) {
	defer b.forget(client)
	if !b.track(client) {
		return
	}
	var replica net.Conn
	err := b.pool.try(func(m *member) (err error) {
		replica, err = net.DialTimeout("tcp", m.Address, dialTimeout)
		return err
	})
	if err != nil {
		b.log.Print(err)
		return
	}
	defer b.forget(replica)
	if !b.track(replica) {
		return
	}
	var group sync.WaitGroup
	group.Go(func() { copyHalf(replica, client) })
	copyHalf(client, replica)
	group.Wait()
}

// copyHalf copies one direction of a connection. Its regular end leaves the other
// direction open; an error ends both.
func copyHalf(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	_ = to.(*net.TCPConn).CloseWrite() // fails if the connection has ended
}

// track lets Close end a connection. It returns false if Close was called.
func (b *Balancer) track(conn net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conns == nil {
		return false
	}
	b.conns[conn] = true
	return true
}

func (b *Balancer) forget(conn net.Conn) {
	conn.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, conn)
}
