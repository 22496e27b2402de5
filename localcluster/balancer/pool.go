// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	checkPeriod = 500 * time.Millisecond
	// checkTimeout bounds how long the detection of a frozen replica takes.
	checkTimeout = 2 * time.Second
)

// pool is the replicas.
type pool struct {
	members []*member
	random  bool
	turn    atomic.Uint64
}

type member struct {
	Replica

	mu     sync.Mutex // guards what follows
	health health
	starts int // calls of starting
}

// health is what is known of a replica:
//
//	unready ── check succeeds ──▶ ready ── check or connection fails ──▶ failing
//	                                ▲                                       │
//	                                └──────────── check succeeds ───────────┘
//
// starting makes it unready.
type health int

const (
	unready health = iota // never gets clients: it would answer before it knows who may do what
	ready
	failing // gets clients if no replica is ready: a busy machine may delay checks
)

func newPool(replicas []Replica, random bool) *pool {
	p := &pool{random: random}
	for _, replica := range replicas {
		p.members = append(p.members, &member{Replica: replica})
	}
	return p
}

func (p *pool) find(address string) *member {
	for _, m := range p.members {
		if m.Address == address {
			return m
		}
	}
	return nil
}

// watch checks the replica until ctx ends.
func (m *member) watch(ctx context.Context) {
	ticker := time.NewTicker(checkPeriod)
	defer ticker.Stop()
	for {
		m.check(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (m *member) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	m.mu.Lock()
	starts := m.starts
	m.mu.Unlock()
	if m.Check(ctx) != nil {
		m.failed()
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.starts == starts { // else the check may have reached the process before
		m.health = ready
	}
}

func (m *member) failed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.health == ready {
		m.health = failing
	}
}

func (m *member) starting() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.health = unready
	m.starts++
}

func (m *member) now() health {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.health
}

// choose returns the members in the order in which to try them.
func (p *pool) choose() []*member {
	of := map[health][]*member{}
	for _, m := range p.members {
		h := m.now()
		of[h] = append(of[h], m)
	}
	turn := int(p.turn.Add(1) % (1 << 30))
	if p.random {
		turn = rand.IntN(1 << 30)
	}
	var order []*member
	for _, h := range []health{ready, failing} {
		if members := of[h]; members != nil {
			first := turn % len(members)
			order = slices.Concat(order, members[first:], members[:first])
		}
	}
	return order
}

var errNone = errors.New("no API server is ready")

// try calls connect with one member after the other until it succeeds.
func (p *pool) try(connect func(*member) error) error {
	var causes []string
	for _, m := range p.choose() {
		err := connect(m)
		if err == nil {
			return nil
		}
		m.failed()
		causes = append(causes, err.Error())
	}
	if causes == nil {
		return errNone
	}
	return errors.New(strings.Join(causes, "; "))
}
