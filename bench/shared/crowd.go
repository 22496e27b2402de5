// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// openers is the number of connections that are opened at the same time.
const openers = 16

// fromNow is the query of a watch that begins now, from the cache.
const fromNow = "?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

// A crowd is the open watches of users. Each user has a connection.
type crowd struct {
	sets  []*streams.Set
	watch []crowdWatch // per of each user, one user after the other
	per   int
	cut   atomic.Int64
}

type crowdWatch struct {
	ended chan struct{}
	at    time.Time // when it ended
}

// gather opens watches at a server: per of each user, of the path that path returns.
func (r *harness) gather(at *endpoint, people []*person, per int, path func(*person) string) (*crowd, error) {
	c := &crowd{sets: make([]*streams.Set, min(openers, len(people))), watch: make([]crowdWatch, len(people)*per), per: per}
	for i := range c.watch {
		c.watch[i].ended = make(chan struct{})
	}
	g, ctx := errgroup.WithContext(r.ctx)
	for k := range c.sets {
		first, end := k*len(people)/len(c.sets), (k+1)*len(people)/len(c.sets)
		g.Go(func() (err error) {
			c.sets[k], err = c.open(ctx, at, people[first:end], first*per, path)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		c.close()
		return nil, fmt.Errorf("opening: %w", err)
	}
	return c, nil
}

func (c *crowd) open(ctx context.Context, at *endpoint, people []*person, first int, path func(*person) string) (*streams.Set, error) {
	o := streams.Options{
		PerConnection: c.per,
		Header:        func(i int) map[string]string { return people[i/c.per].header() },
		Ended: func(i int, at time.Time, _ error) {
			w := &c.watch[first+i]
			w.at = at
			c.cut.Add(1)
			close(w.ended)
		},
	}
	for _, p := range people {
		for range c.per {
			o.Paths = append(o.Paths, path(p)+fromNow)
		}
	}
	return streams.Open(ctx, at.target, o)
}

func (c *crowd) close() {
	var closing sync.WaitGroup
	for _, s := range c.sets {
		if s != nil {
			closing.Go(s.Close)
		}
	}
	closing.Wait()
}

// lines is the number of events that all watches received.
func (c *crowd) lines() (n int64) {
	for _, s := range c.sets {
		n += s.Counts().Total
	}
	return n
}

// delivered waits until every watch has received n events.
func (c *crowd) delivered(n int64) error {
	for _, s := range c.sets {
		if _, err := s.WaitEach(n, timeout); err != nil {
			return err
		}
	}
	return nil
}

// end waits until the watches of a user have ended, and returns when they did.
func (c *crowd) end(user int) ([]time.Time, error) {
	var all []time.Time
	for i := user * c.per; i < (user+1)*c.per; i++ {
		select {
		case <-c.watch[i].ended:
			all = append(all, c.watch[i].at)
		case <-time.After(timeout):
			return nil, fmt.Errorf("the watch is open %v after its right is gone", timeout)
		}
	}
	return all, nil
}
