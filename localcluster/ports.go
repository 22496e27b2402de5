// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
)

// reservations keep two clusters that start at the same time from choosing the
// same port: a component listens on its port only seconds after it was chosen.
// Each is a socket with an abstract name, which only Linux has, and which the
// kernel releases when this process ends.
type reservations struct{ held []net.Listener }

// take reserves a port, if nothing listens on it.
func (r *reservations) take(port int) error {
	if runtime.GOOS == "linux" {
		lock, err := net.Listen("unix", fmt.Sprintf("@localcluster-port-%d", port))
		if err != nil {
			return err
		}
		r.held = append(r.held, lock)
	}
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	return listener.Close()
}

// free reserves a port below the range the kernel hands out for outgoing
// connections (32768 and up on Linux). A port from that range could be taken
// by some client's connection, even one to this very port, while its component
// is stopped, and the component could not come back.
func (r *reservations) free() (int, error) {
	for range 1000 {
		port := 20000 + rand.IntN(10000)
		if r.take(port) == nil {
			return port, nil
		}
	}
	return 0, errors.New("no free port between 20000 and 29999 on 127.0.0.1; stop something that listens there")
}

func (r *reservations) release() {
	for _, lock := range r.held {
		lock.Close()
	}
	r.held = nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
