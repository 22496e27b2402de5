// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

// fullListener cannot accept connections a few times, and then is closed.
type fullListener struct {
	net.Listener
	times int
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.times--; l.times < 0 {
		return nil, net.ErrClosed
	}
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// TestAcceptErrors: that no connection can be accepted is logged once.
func TestAcceptErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out bytes.Buffer
	s := &server{log: slog.New(slog.NewTextHandler(&out, nil))}
	_ = s.newHTTPServer(http.NotFoundHandler()).Serve(&fullListener{l, 4})
	if log := out.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "level=WARN") || !strings.Contains(log, "too many open files") {
		t.Errorf("log:\n%s", log)
	}
}
