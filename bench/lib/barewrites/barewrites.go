// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package barewrites is a server of watches that only writes: every event is the same
// bytes, and a goroutine per processor writes them to one watch after the other. Its CPU
// is what the kernel takes, and with TLS the encryption. A server that delivers as many
// bytes in as many calls cannot take less.
//
// Over HTTP/1.1 without TLS an event is one write per watch. Over HTTP/2 with TLS the
// frames of all streams of a connection fill whole records, and a connection's records
// are written together.
//
// It answers every request with a watch, and implements only the parts of HTTP that
// package streams uses.
package barewrites

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// addresses is what the server's process tells.
type addresses struct {
	HTTP1, HTTP2 string
	CA           []byte // PEM
}

// Serve serves until the input ends. It writes one event, a line of size bytes, to all
// watches for each byte of the input.
func Serve(size int, in io.Reader, out io.Writer) error {
	pair, ca, err := fakeapi.SelfSigned()
	if err != nil {
		return err
	}
	one, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer one.Close()
	two, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer two.Close()
	s := &server{line: strings.Repeat("x", size-1) + "\n", config: &tls.Config{
		Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"},
		DynamicRecordSizingDisabled: true,
	}}
	go s.accept(one, s.open1)
	go s.accept(two, s.open2)
	if err := json.NewEncoder(out).Encode(addresses{one.Addr().String(), two.Addr().String(), ca}); err != nil {
		return err
	}
	for events := bufio.NewReader(in); ; {
		if _, err := events.ReadByte(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n, _ := events.Discard(events.Buffered())
		s.events(1 + n)
	}
}

// A sink is a connection with its watches.
type sink interface {
	event() error // writes an event to each watch
	Close() error
}

type server struct {
	line   string
	config *tls.Config

	mu    sync.Mutex // guards sinks
	sinks []sink
}

// events writes n events to every watch, each connection's in one of as many goroutines
// as there are processors, the caller's among them. A connection that fails is of a client
// that has gone, which ends its watches.
func (s *server) events(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next atomic.Int64
	write := func() {
		for i := next.Add(1) - 1; i < int64(len(s.sinks)); i = next.Add(1) - 1 {
			for range n {
				if s.sinks[i].event() != nil {
					s.sinks[i].Close()
					s.sinks[i] = nil
					break
				}
			}
		}
	}
	var writers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(s.sinks)) - 1 {
		writers.Go(write)
	}
	write() // the only one with a single connection, which is not worth waking a thread for
	writers.Wait()
	s.sinks = slices.DeleteFunc(s.sinks, func(c sink) bool { return c == nil })
}

func (s *server) accept(l net.Listener, open func(net.Conn) error) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the end
		}
		go func() {
			if open(c) != nil {
				c.Close()
			}
		}()
	}
}

func (s *server) add(c sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sinks = append(s.sinks, c)
}

// conn1 is an HTTP/1.1 connection, with one watch.
type conn1 struct {
	net.Conn
	chunk []byte
}

func (s *server) open1(c net.Conn) error {
	for in := bufio.NewReader(c); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if line == "\r\n" {
			break
		}
	}
	s.mu.Lock() // a client that has the header gets all later events
	defer s.mu.Unlock()
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return err
	}
	s.sinks = append(s.sinks, conn1{c, fmt.Appendf(nil, "%x\r\n%s\r\n", len(s.line), s.line)})
	return nil
}

func (c conn1) event() error {
	_, err := c.Write(c.chunk)
	return err
}
