// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// readSize is the size of a connection's read buffer.
const readSize = 8 << 10

// open1 opens each watch on a separate HTTP/1.1 connection.
func (s *Set) open1(ctx context.Context, t Target, o Options) error {
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, path := range o.Paths {
		g.Go(func() error {
			nc, at, err := t.dial(ctx, o.Observe != nil)
			if err != nil {
				return err
			}
			s.add(nc)
			c := &conn1{Conn: nc, r: bufio.NewReaderSize(nc, readSize)}
			if err := c.send(t, path, o.header(i)); err != nil {
				return err
			}
			status := make(chan int, 1)
			w := &s.watches[i]
			w.at = at
			w.opened = func(code int) { status <- code }
			left := make(chan error, 1)
			s.reading.Go(func() {
				err := c.receive(w)
				w.end(err)
				left <- err
			})
			select {
			case code := <-status:
				if code != 200 {
					return fmt.Errorf("watch: status %d", code)
				}
				return nil
			case err := <-left:
				return fmt.Errorf("watch: %w", err)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	return g.Wait()
}

// conn1 is an HTTP/1.1 connection, with one request at a time.
type conn1 struct {
	net.Conn
	r *bufio.Reader
}

func (c *conn1) send(t Target, path string, header map[string]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\n", path, t.Address)
	for name, value := range withDefaults(t.Header, header) {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	b.WriteString("\r\n")
	_, err := io.WriteString(c, b.String())
	return err
}

// receive reads one response.
func (c *conn1) receive(to receiver) error {
	text := textproto.NewReader(c.r)
	first, err := text.ReadLine()
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(first, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil {
		return fmt.Errorf("no status line: %q", first)
	}
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return err
	}
	to.header(status)
	length := header.Get("Content-Length")
	switch {
	case header.Get("Transfer-Encoding") == "chunked":
		return c.chunks(to)
	case length != "":
		n, err := strconv.ParseInt(length, 10, 64)
		if err != nil {
			return err
		}
		return c.body(to, n)
	}
	if err := c.body(to, 1<<62); !errors.Is(err, io.EOF) {
		return err
	}
	return nil // the body ends with the connection
}

// chunks reads a chunked body to its end.
func (c *conn1) chunks(to receiver) error {
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 64)
		if err != nil {
			return fmt.Errorf("%q is not the size of a chunk", line)
		}
		if err := c.body(to, size); err != nil {
			return err
		}
		if end, err := c.r.ReadSlice('\n'); err != nil {
			return err
		} else if string(end) != "\r\n" {
			return fmt.Errorf("%q follows a chunk", end)
		}
		if size == 0 {
			return nil
		}
	}
}

// body passes n bytes to the receiver, in pieces as they arrive.
func (c *conn1) body(to receiver, n int64) error {
	for n > 0 {
		if c.r.Buffered() == 0 {
			if _, err := c.r.Peek(1); err != nil {
				return err
			}
		}
		p, err := c.r.Peek(int(min(n, int64(c.r.Buffered()))))
		if err != nil {
			return err
		}
		to.data(p)
		if _, err := c.r.Discard(len(p)); err != nil {
			return err
		}
		n -= int64(len(p))
	}
	return nil
}
