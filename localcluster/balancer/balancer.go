// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package balancer spreads clients over the replicas of an API server, as the load
// balancer of a highly available control plane does. It sends clients to a replica once
// its health check succeeds after its start. Later it prefers the replicas whose check
// succeeds, and tries the next one if it cannot connect.
//
// A Balancer either forwards connections without looking into them, or terminates TLS
// and forwards each request on its own. A client certificate does not pass through the
// second kind: the API server gets the user and groups from the balancer, which it
// trusts as a front proxy.
//
// A connection or stream to a replica that fails ends for the client, too. Connections
// to a replica whose health check fails stay open.
package balancer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Mode is how clients are spread over the replicas.
type Mode string

const (
	// Connection forwards each TCP connection to the next replica. The client's TLS
	// session is with the replica.
	Connection Mode = "connection"
	// Request forwards each request to the next replica.
	Request Mode = "request"
	// Random forwards each request to a random replica.
	Random Mode = "random"
)

// Modes are all modes; the first one is the default.
var Modes = []Mode{Connection, Request, Random}

// ParseMode returns the mode with a name.
func ParseMode(name string) (Mode, error) {
	if mode := Mode(name); slices.Contains(Modes, mode) {
		return mode, nil
	}
	return "", fmt.Errorf("unknown balancing %q; use connection, request or random", name)
}

// Replica is one of the API servers.
type Replica struct {
	Address string // host:port
	// Check returns nil if the replica can serve. It may take as long as ctx allows.
	Check func(ctx context.Context) error
}

// Config configures a Balancer. The zero Mode is Connection, which ignores the TLS
// configurations.
type Config struct {
	Mode     Mode
	Replicas []Replica
	// Server is presented to clients. It verifies their certificates, if they have any.
	Server *tls.Config
	// Client verifies the replicas. Its certificate is that of a front proxy, from
	// which the replicas accept the name of the user.
	Client *tls.Config
	Log    *log.Logger
}

// Balancer accepts clients until Close.
type Balancer struct {
	pool     *pool
	log      *log.Logger
	listener net.Listener
	server   *http.Server // nil in mode Connection
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu; the open ones in mode Connection, nil after Close
}

// dialTimeout bounds how long a frozen replica delays a client.
const dialTimeout = 2 * time.Second

// Start accepts clients on the listener, which Close closes.
func Start(listener net.Listener, config Config) *Balancer {
	ctx, cancel := context.WithCancel(context.Background())
	b := &Balancer{
		pool:     newPool(config.Replicas, config.Mode == Random),
		log:      config.Log,
		listener: listener,
		cancel:   cancel,
		conns:    map[net.Conn]bool{},
	}
	for _, m := range b.pool.members {
		b.running.Go(func() { m.watch(ctx) })
	}
	if config.Mode == Request || config.Mode == Random {
		b.server = newServer(ctx, b.pool, config)
		b.running.Go(func() {
			if err := b.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
				b.log.Print(err)
			}
		})
	} else {
		b.running.Go(b.accept)
	}
	return b
}

// Starting keeps clients from a replica that is about to be started, until it is ready.
func (b *Balancer) Starting(address string) {
	if m := b.pool.find(address); m != nil {
		m.starting()
	}
}

// Ready reports whether clients are sent to a replica.
func (b *Balancer) Ready(address string) bool {
	m := b.pool.find(address)
	return m != nil && m.now() == ready
}

// Close ends all connections.
func (b *Balancer) Close() {
	b.cancel()
	if b.server != nil {
		b.server.Close()
	}
	b.listener.Close()
	b.mu.Lock()
	for conn := range b.conns {
		conn.Close()
	}
	b.conns = nil
	b.mu.Unlock()
	b.running.Wait()
}
