// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// The kinds of WebSocket frames (RFC 6455, 5.2) that a server sends.
const (
	OpText   = 1
	OpBinary = 2
	OpClose  = 8
	OpPing   = 9
)

// A Message is one WebSocket frame.
type Message struct {
	Op      byte
	Payload []byte
}

func (m Message) String() string {
	if m.Op == OpClose && len(m.Payload) >= 2 {
		return fmt.Sprintf("close %d %q", binary.BigEndian.Uint16(m.Payload), m.Payload[2:])
	}
	return fmt.Sprintf("op %d %.300q", m.Op, m.Payload)
}

// OwnOrigin stands for an Origin header with the endpoint's address.
const OwnOrigin = "own"

// WebSocket requests an upgrade and returns the answer to the handshake and, if it was
// accepted, all messages up to the close frame. The body of a refusal is in the answer.
// Pings are omitted: their time depends on the server.
func (e *Endpoint) WebSocket(ctx context.Context, r Request) (*Answer, []Message, error) {
	dial := e.Dial
	if r.As == AsNobody {
		dial = e.DialPlain
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := e.handshake(conn, r); err != nil {
		return nil, nil, err
	}
	body := bufio.NewReader(conn)
	resp, err := http.ReadResponse(body, nil)
	if err != nil {
		return nil, nil, err
	}
	a := head(resp)
	if a.Code != http.StatusSwitchingProtocols {
		a.Body, a.End = io.ReadAll(resp.Body)
		return a, nil, nil
	}
	var all []Message
	for {
		m, err := readMessage(body)
		if err != nil {
			a.End = err
			return a, all, nil
		}
		if m.Op == OpPing {
			continue
		}
		all = append(all, m)
		if m.Op == OpClose {
			return a, all, nil
		}
	}
}

func (e *Endpoint) handshake(conn net.Conn, r Request) error {
	_, host, _ := strings.Cut(e.URL, "://")
	var b strings.Builder
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", r.Path, host)
	fmt.Fprintf(&b, "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
	if r.Accept != "" {
		fmt.Fprintf(&b, "Accept: %s\r\n", r.Accept)
	}
	for name, values := range r.Header {
		for _, v := range values {
			if name == "Origin" && v == OwnOrigin {
				v = e.URL
			}
			fmt.Fprintf(&b, "%s: %s\r\n", name, v)
		}
	}
	b.WriteString("\r\n")
	_, err := io.WriteString(conn, b.String())
	return err
}

func readMessage(r *bufio.Reader) (Message, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Message{}, err
	}
	n := uint64(head[1] & 0x7f)
	if head[0]&0x80 == 0 || head[1]&0x80 != 0 {
		return Message{}, fmt.Errorf("a WebSocket frame in pieces, or masked by the server: %x", head)
	}
	var err error
	switch n {
	case 126:
		var long uint16
		err = binary.Read(r, binary.BigEndian, &long)
		n = uint64(long)
	case 127:
		err = binary.Read(r, binary.BigEndian, &n)
	}
	if err != nil || n > 64<<20 {
		return Message{}, fmt.Errorf("a WebSocket frame of %d bytes: %w", n, err)
	}
	m := Message{Op: head[0] & 0x0f, Payload: make([]byte, n)}
	_, err = io.ReadFull(r, m.Payload)
	return m, err
}
