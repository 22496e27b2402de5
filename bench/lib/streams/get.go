// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"context"
	"fmt"
	"sync"
	"time"
)

// An Answer is the result of a request.
type Answer struct {
	Bytes int64         // of the body
	Wall  time.Duration // from sending the request to the end of the body
}

// A Client sends requests one after the other on one connection, and drops the bodies
// of the answers.
type Client struct {
	target  Target
	one     *conn1
	two     *conn2
	reading sync.WaitGroup
}

// Dial connects a client.
func Dial(ctx context.Context, t Target) (*Client, error) {
	c := &Client{target: t}
	if t.Protocol != HTTP1 {
		var err error
		c.two, err = dial2(ctx, t, false, c.reading.Go)
		return c, err
	}
	nc, _, err := t.dial(ctx, false)
	if err != nil {
		return nil, err
	}
	c.one = &conn1{Conn: nc, r: bufio.NewReaderSize(nc, 64<<10)}
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error {
	if c.two == nil {
		return c.one.Close()
	}
	err := c.two.nc.Close()
	c.reading.Wait()
	return err
}

// Get sends a GET and reads the answer to its end. A status other than 200 is
// an error.
func (c *Client) Get(path string, header map[string]string) (Answer, error) {
	start := time.Now()
	r := &body{done: make(chan error, 1)}
	if c.two != nil {
		if err := c.two.send(path, withDefaults(c.target.Header, header), r); err != nil {
			return Answer{}, err
		}
	} else {
		if err := c.one.send(c.target, path, header); err != nil {
			return Answer{}, err
		}
		r.end(c.one.receive(r))
	}
	if err := <-r.done; err != nil {
		return Answer{}, fmt.Errorf("%s: %w", path, err)
	}
	if r.status != 200 {
		return Answer{}, fmt.Errorf("%s: status %d", path, r.status)
	}
	return Answer{r.bytes, time.Since(start)}, nil
}

// body is the receiver of an answer.
type body struct {
	status int
	bytes  int64
	done   chan error
}

func (b *body) header(status int) { b.status = status }
func (b *body) data(p []byte)     { b.bytes += int64(len(p)) }
func (b *body) end(err error)     { b.done <- err }
