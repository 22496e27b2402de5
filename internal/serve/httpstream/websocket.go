// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"

	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

// lastWrites is how long writes may take after their watch is over.
const lastWrites = time.Second

// A webSocketSink sends each frame as a message, text for JSON.
type webSocketSink struct {
	ctx   context.Context // of the watch
	ws    *websocket.Conn
	text  bool
	timer *watchTimer
}

func (s webSocketSink) frame(parts []string) (err error) {
	if s.timer.late() {
		return os.ErrDeadlineExceeded
	}
	s.limit(WriteTimeout)
	if s.ctx.Err() != nil {
		s.limit(lastWrites)
	}
	message := strings.Join(parts, "")
	if s.text {
		err = websocket.Message.Send(s.ws, message)
	} else {
		err = websocket.Message.Send(s.ws, []byte(message))
	}
	_ = s.ws.SetWriteDeadline(time.Time{}) // none for the answers to pings
	return err
}

// limit sets the deadline of the current and later writes. It fails only on a closed
// connection.
func (s webSocketSink) limit(d time.Duration) { _ = s.ws.SetWriteDeadline(time.Now().Add(d)) }

func (webSocketSink) flush() error { return nil }
func (webSocketSink) release()     {}

// ServeWebSocket answers a request with a watch over a WebSocket, and returns when the
// watch has ended. The handshake is done by the library that the API server uses,
// which requires an Origin and at most one subprotocol.
func (t *Tracker) ServeWebSocket(w http.ResponseWriter, r *http.Request, s *Watch) {
	defer s.Close()
	s.tracker = t
	ctx, cancel := context.WithDeadline(r.Context(), s.timer.deadline)
	defer cancel()
	websocket.Handler(func(ws *websocket.Conn) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var reading sync.WaitGroup
		reading.Go(func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, ws) // clients have nothing to send
		})
		sink := webSocketSink{ctx, ws, s.Form.Media == wire.JSON, &s.timer}
		// At the end the gateway does not wait for a client that does not read.
		defer context.AfterFunc(ctx, func() { sink.limit(lastWrites) })()
		s.sink, s.gone = sink, ctx.Done()
		s.timer.begin(nil)
		t.adopt(s)
		defer s.finish()
		s.run()
		sink.limit(lastWrites)
		ws.Close()
		reading.Wait()
	}).ServeHTTP(w, r)
}
