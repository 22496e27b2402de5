// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package freeport picks ports for servers that tests stop and start again.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// tried counts the ports that were tried, from a random start: several test programs run
// at the same time.
var tried atomic.Uint32

func init() { tried.Store(rand.Uint32()) }

// Pick returns a free port of 127.0.0.1, another one for each call, of n ports from a
// first one. They should be below the range that the kernel uses for outgoing connections
// (32768 and up on Linux). Clients reconnect dozens of times a second while a gateway is
// down: their connections could otherwise take its port before it restarts.
func Pick(first, n uint32) (port string, err error) {
	for range n {
		var l net.Listener
		port = strconv.Itoa(int(first + tried.Add(1)%n))
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			return port, l.Close()
		}
	}
	return "", err
}
