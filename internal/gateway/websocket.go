// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"

	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// lastWrites is for how long a WebSocket is written to after its watch is over.
const lastWrites = time.Second

// A webSocketSink sends each frame as a message, text for JSON.
type webSocketSink struct {
	ctx  context.Context // of the watch
	ws   *websocket.Conn
	text bool
}

func (s webSocketSink) frame(parts []string) (err error) {
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
	_ = s.ws.SetWriteDeadline(time.Time{}) // pings are answered at any time
	return err
}

// limit gives what is written, and what is being written, so long. It fails
// only on a connection that is closed.
func (s webSocketSink) limit(d time.Duration) { _ = s.ws.SetWriteDeadline(time.Now().Add(d)) }

func (webSocketSink) flush() error { return nil }
func (webSocketSink) release()     {}

// serveWebSocket answers the handshake, by the library that the API server
// uses, which wants an Origin and at most one subprotocol; and then streams
// until the client closes the connection or the stream ends.
func serveWebSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, f wire.Form, stream func(context.Context, frameSink)) {
	websocket.Handler(func(ws *websocket.Conn) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var reading sync.WaitGroup
		reading.Go(func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, ws) // clients have nothing to say
		})
		sink := webSocketSink{ctx, ws, f.Media == wire.JSON}
		// One that does not read is not waited for at the end.
		defer context.AfterFunc(ctx, func() { sink.limit(lastWrites) })()
		stream(ctx, sink)
		sink.limit(lastWrites)
		ws.Close()
		reading.Wait()
	}).ServeHTTP(w, r)
}

// isWebSocket reports whether r asks for a WebSocket, as the API server reads
// the headers.
func isWebSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}
