// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import "net/http"

// A Feed is the rest of a response, which the connection's writer pulls. Its methods are
// called on one goroutine at a time and must not block: the other streams of the
// connection wait meanwhile.
type Feed interface {
	// Next returns what follows in the body, in pieces; the slice is used until the next
	// call. With [Wait], [End] and [Leave] there is nothing.
	Next() ([]string, Next)
	// Sent is called after all that Next returned has been written.
	Sent()
	// Done is called at the end, and nothing after it: when the end of the body has been
	// written, or when the stream has ended before.
	Done()
	// Run is called, on its own goroutine, after Next returned Leave: the feed writes
	// to the stream itself, until it ends the stream or calls [Stream.Pull] again.
	Run()
}

// Next is what follows a call of [Feed.Next].
type Next uint8

const (
	More  Next = iota // there may be more now
	Wait              // call again after Wake
	End               // the body is complete
	Leave             // the feed leaves the writer
)

// TakeOver makes the response the caller's, as hijacking does with a connection: it sends
// the header, of status 200 unless there was one, and the response continues after the
// handler has returned. It returns nil if w is not, and does not wrap, a response of this
// package, and for HEAD. The request's context ends with the handler.
func TakeOver(w http.ResponseWriter) *Stream {
	for inner := w; ; {
		if res, ok := inner.(*response); ok {
			w.WriteHeader(http.StatusOK)
			return res.takeOver()
		}
		outer, ok := inner.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		inner = outer.Unwrap()
	}
}

// Pull makes the connection's writer send the rest of the response from f. The caller
// must not use the stream afterwards, except for Wake and Reset.
func (st *Stream) Pull(f Feed) {
	c := st.c
	c.mu.Lock()
	ended := c.writerEnded
	if !ended {
		st.feed, st.out = f, nil
		c.feeds++
		if st.state == closed {
			c.ended++
		}
	}
	c.mu.Unlock()
	if ended {
		f.Done()
		return
	}
	st.Wake() // even if it was reset: then the writer tells the feed
}

// Wake makes the writer call the feed's Next. It does not block, and may be called by any
// goroutine with any lock held.
func (st *Stream) Wake() { st.c.enqueue(st) }

// Write sends p and waits until the writer has taken it.
func (st *Stream) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return st.send(p, false)
}

// End ends a response that was taken over.
func (st *Stream) End() { _, _ = st.send(nil, true) }

// Reset ends the stream at once, without the rest of the response.
func (st *Stream) Reset() { st.c.reset(st, cancelled) }

// Gone returns a channel that is closed when the stream has ended.
func (st *Stream) Gone() <-chan struct{} {
	st.c.mu.Lock()
	defer st.c.mu.Unlock()
	if st.gone == nil {
		st.gone = make(chan struct{})
		if st.state == closed {
			close(st.gone)
		}
	}
	return st.gone
}
