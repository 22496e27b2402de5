// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// echoUpgrade switches to the requested protocol and returns what it receives, in upper
// case, until the other side closes.
func echoUpgrade(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("upgrade arrived over %s", r.Proto)
		}
		conn, brw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(brw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-Stream-Protocol-Version: %s\r\n\r\nhello ",
			r.Header.Get("Upgrade"), r.Header.Get("X-Stream-Protocol-Version"))
		brw.Flush()
		buf := make([]byte, 1024)
		for {
			n, err := brw.Read(buf)
			if err != nil {
				io.WriteString(conn, "bye")
				return
			}
			io.WriteString(conn, strings.ToUpper(string(buf[:n])))
		}
	})
}

const execPath = "/api/v1/namespaces/default/pods/p/exec?command=sh&stdin=true"

// upgrade opens a connection and asks to switch protocols; it sends early in the same
// packet as the request.
func upgrade(t *testing.T, r *rig, protocol, early string, headers ...string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn := r.dial()
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-Stream-Protocol-Version: v5\r\n%s\r\n%s",
		execPath, r.addr(), protocol, strings.Join(append(headers, ""), "\r\n"), early)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodGet})
	if err != nil {
		t.Fatal(err)
	}
	return conn, in, res
}

func expect(t *testing.T, in io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(in, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

func TestUpgrade(t *testing.T) {
	for _, tlsUpstream := range []bool{false, true} {
		for _, protocol := range []string{"SPDY/3.1", "websocket"} {
			t.Run(fmt.Sprintf("%s/tls=%v", strings.ToLower(protocol[:4]), tlsUpstream), func(t *testing.T) {
				r := newRig(t, echoUpgrade(t), rigOptions{tlsUpstream: tlsUpstream})
				conn, in, res := upgrade(t, r, protocol, "early ")
				if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Upgrade") != protocol ||
					res.Header.Get("X-Stream-Protocol-Version") != "v5" {
					t.Fatalf("%s %v", res.Status, res.Header)
				}
				expect(t, in, "hello EARLY ")
				for i := range 3 {
					fmt.Fprintf(conn, "ping %d ", i)
					expect(t, in, fmt.Sprintf("PING %d ", i))
				}
				conn.(*net.TCPConn).CloseWrite()
				expect(t, in, "bye")
				if _, err := in.ReadByte(); err != io.EOF {
					t.Errorf("after the end: %v", err)
				}
			})
		}
	}
}

func TestUpgradeRefusedUpstream(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"kind":"Status"}`)
	}), rigOptions{tlsUpstream: true})
	_, _, res := upgrade(t, r, "websocket", "")
	if body := readAll(t, res); res.StatusCode != http.StatusForbidden || body != `{"kind":"Status"}` {
		t.Errorf("%s %q", res.Status, body)
	}
}

// The gateway closes both connections, even if neither side sends anything.
func TestDrainEndsUpgrades(t *testing.T) {
	r := newRig(t, echoUpgrade(t), rigOptions{tlsUpstream: true})
	_, in, _ := upgrade(t, r, "SPDY/3.1", "")
	expect(t, in, "hello ")
	r.gateway.Drain(t.Context())
	if rest, _ := io.ReadAll(in); string(rest) != "" && string(rest) != "bye" {
		t.Errorf("got %q", rest)
	}
	if got := r.complaints(); got != "" {
		t.Errorf("logged:\n%s", got)
	}
}

func TestDrain(t *testing.T) {
	release, started := make(chan struct{}), make(chan struct{}, 2)
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		http.NewResponseController(w).Flush()
		started <- struct{}{}
		select {
		case <-release:
			io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	}), rigOptions{})
	stream, short := r.get("/api/v1/pods/x/log?follow=true"), r.get("/api")
	<-started
	<-started

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		r.gateway.Drain(t.Context())
	}()
	if _, err := io.ReadAll(stream.Body); err == nil {
		t.Error("the stream that was cut ended with a clean end")
	}
	if err := r.gateway.Ready(t.Context()); err == nil {
		t.Error("ready while draining")
	}
	refused := r.get("/api/v1/namespaces/a/pods/p/log?follow=1")
	if s := statusOf(t, refused); s.Code != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") != "1" {
		t.Errorf("new stream: %+v", s)
	}
	select {
	case <-drained:
		t.Fatal("drained with a request under way")
	default:
	}
	close(release)
	if got := readAll(t, short); got != "done" {
		t.Errorf("the other request: %q", got)
	}
	<-drained
}

func TestDrainCutsAtTheEnd(t *testing.T) {
	arrived := make(chan struct{})
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { close(arrived); <-r.Context().Done() }), rigOptions{})
	answer := make(chan int)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.URL+"/api", nil)
		res, err := r.client.Do(req)
		if err != nil {
			t.Error(err)
			close(answer)
			return
		}
		res.Body.Close()
		answer <- res.StatusCode
	}()
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r.gateway.Drain(ctx)
	if got := <-answer; got != http.StatusServiceUnavailable {
		t.Errorf("got %d", got)
	}
}
