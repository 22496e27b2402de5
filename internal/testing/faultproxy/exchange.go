// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// quiet discards what net/http logs about aborted handlers.
var quiet = log.New(io.Discard, "", 0)

// An exchange is one request and its fault.
type exchange struct {
	p        *Proxy
	resource string
	kind     Kind
	own      bool
	n        int
	fault    Fault
	past     *past
	began    time.Time
	cancel   context.CancelCauseFunc

	w     http.ResponseWriter
	r     *http.Request
	flush func() error

	silent  atomic.Bool
	faulted bool // guarded by p.mu: a fault was injected
	faults  int  // drawn after the first
}

// inject records that the fault is injected now.
func (x *exchange) inject() {
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	x.faulted = true
	x.p.injected = append(x.p.injected, Injection{time.Now(), x.resource, x.kind, x.n, x.fault})
}

// abort breaks the connection, so that the reader does not take a part for the
// whole response.
func (x *exchange) abort() { panic(http.ErrAbortHandler) }

// hold waits, at most until Heal.
func (x *exchange) hold(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.p.healed:
	case <-x.r.Context().Done():
		x.abort()
	}
}

// write sends bytes at once, unless the exchange is silent.
func (x *exchange) write(b []byte) {
	if x.silent.Load() {
		<-x.r.Context().Done()
		x.abort()
	}
	if _, err := x.w.Write(b); err != nil {
		x.abort()
	}
	if x.flush() != nil {
		x.abort()
	}
}

// drip sends a few bytes at a time for the fault's duration, and then the rest.
func (x *exchange) drip(b []byte) {
	end := time.Now().Add(x.fault.For)
	for len(b) > 0 && time.Now().Before(end) {
		n := min(x.fault.Count*8, len(b))
		x.write(b[:n])
		b = b[n:]
		x.hold(5 * time.Millisecond)
	}
	x.write(b)
}

// status returns a Status as the API server sends it.
func status(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

func (x *exchange) answer(code int, contentType, body string) {
	x.inject()
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(code)
	_, _ = io.WriteString(x.w, body) // the client may have disconnected
}

const page = "<html><head><title>502 Bad Gateway</title></head><body>\n<center>nginx</center></body></html>\n"

// instead injects a fault that replaces forwarding, and reports whether the
// request is done.
func (x *exchange) instead() bool {
	const plain, asJSON = "text/plain", "application/json"
	switch f := x.fault; f.Name {
	case HalfOpen:
		x.inject()
		x.hold(4 * f.For)
		x.abort()
	case Delay:
		x.inject()
		x.hold(f.For)
	case Gone:
		x.answer(http.StatusGone, asJSON, status(410, "Expired", "too old resource version: 1 (2)"))
		return true
	case TooMany:
		x.answer(http.StatusTooManyRequests, plain, "Too many requests, please try again later.\n")
		return true
	case RetryAfter:
		x.w.Header().Set("Retry-After", "1")
		x.answer(http.StatusTooManyRequests, asJSON, status(429, "TooManyRequests", "storage is (re)initializing"))
		return true
	case Burst:
		if f.Count%2 == 0 {
			x.answer(http.StatusInternalServerError, asJSON, status(500, "InternalError", "Internal error occurred: etcdserver: leader changed"))
		} else {
			x.answer(http.StatusServiceUnavailable, "text/html", page)
		}
		return true
	case HTML:
		x.answer(http.StatusOK, "text/html", page)
		return true
	case Regress:
		x.inject()
		x.replay()
		return true
	}
	return false
}

// copy forwards a body as it arrives.
func (x *exchange) copy(body io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			x.write(buf[:n])
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			x.abort()
		}
	}
}

// body forwards a response that is not a stream.
func (x *exchange) body(resp *http.Response) {
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		x.abort()
	}
	cut := int(x.fault.Part * float64(len(b)))
	switch x.fault.Name {
	case Truncate:
		x.inject()
		x.w.WriteHeader(resp.StatusCode)
		x.write(b[:cut])
		x.abort()
	case TruncateEnd:
		x.inject()
		b = b[:cut]
	case Garble:
		x.inject()
		garble(b, cut, x.fault.Count)
	case Drip:
		x.inject()
		x.w.WriteHeader(resp.StatusCode)
		x.drip(b)
		return
	case None:
		x.remember(b)
	}
	x.w.WriteHeader(resp.StatusCode)
	x.write(b)
}

// garble overwrites bytes by bytes that JSON allows nowhere.
func garble(b []byte, at, n int) {
	for i := at; i < min(at+n, len(b)-1); i++ {
		b[i] = 1
	}
}

// stream forwards a watch, frame by frame.
func (x *exchange) stream(body io.Reader) {
	if f := x.fault; f.Name == EarlyEnd {
		timer := time.AfterFunc(f.For/3, func() { x.cancel(errEnd) })
		defer timer.Stop()
	}
	if x.flush() != nil { // the headers
		x.abort()
	}
	lines := bufio.NewReaderSize(body, 64<<10)
	var recent [][]byte
	see := x.past.follow(x)
	n := 0 // frames since the last fault
	for ; ; n++ {
		due := n == x.fault.Frames && !x.p.IsHealed()
		if due && x.between() {
			return
		}
		line, err := lines.ReadBytes('\n')
		switch {
		case context.Cause(x.r.Context()) == errEnd:
			x.inject()
			return
		case err == io.EOF && len(line) == 0:
			return
		case err != nil:
			x.abort()
		}
		see(line)
		if x.fault.Name == NoEnd && isEnd(line) {
			x.inject()
			continue
		}
		taken, ends := false, false
		if due {
			taken, ends = x.within(line, recent)
		}
		if ends {
			return
		}
		if !taken {
			x.write(line)
		}
		if recent = append(recent, line); len(recent) > 8 {
			recent = recent[1:]
		}
		if x.faulted && n >= x.fault.Frames && x.again() {
			n = 0
		}
	}
}

// later are the faults that a stream may get after its first one.
var later = []Name{CutBetween, CutWithin, End, EndWithin, Stall, Pause, Drip, Duplicate, Older, Garble, GoneWithin, FailWithin}

// again draws another fault for a reflector's stream after the previous one is
// over: otherwise the stream would have no fault until it ends.
func (x *exchange) again() bool {
	if x.kind != Watch && x.kind != WatchList || x.p.IsHealed() {
		return false
	}
	x.faults++
	f := x.p.opts.Draw(x.resource, x.kind, x.n+x.faults<<20)
	if !slices.Contains(later, f.Name) {
		return false
	}
	f.Frames += 2 // the next frame is already counted
	x.fault = f
	return true
}

var errEnd = fmt.Errorf("%w cleanly", errCut)

// isEnd reports whether a frame is the end bookmark of a WatchList.
func isEnd(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)) && bytes.Contains(line, []byte(`"k8s.io/initial-events-end":"true"`))
}

// between injects a fault between two frames, and reports whether it ends the
// stream.
func (x *exchange) between() (ends bool) {
	switch f := x.fault; f.Name {
	case CutBetween:
		x.inject()
		x.abort()
	case End:
		x.inject()
		return true
	case Stall:
		x.inject()
		x.hold(4 * f.For)
		x.abort()
	case Pause:
		x.inject()
		x.hold(f.For)
	case GoneWithin:
		x.inject()
		x.write([]byte(`{"type":"ERROR","object":` + status(410, "Expired", "too old resource version: 1 (2)") + "}\n"))
		return true
	case FailWithin:
		x.inject()
		x.write([]byte(`{"type":"ERROR","object":` + status(500, "InternalError", "etcdserver: no leader") + "}\n"))
		return true
	}
	return false
}

// within injects a fault into the frame. taken is set if the frame must not be
// forwarded after that, ends if the fault ends the stream.
func (x *exchange) within(line []byte, recent [][]byte) (taken, ends bool) {
	cut := int(x.fault.Part * float64(len(line)))
	switch x.fault.Name {
	case CutWithin:
		x.inject()
		x.write(line[:cut])
		x.abort()
	case EndWithin:
		x.inject()
		x.write(line[:cut])
		return true, true
	case Drip:
		x.inject()
		x.drip(line)
	case Duplicate:
		x.inject()
		x.write(line)
		x.write(line)
	case Older:
		if len(recent) == 0 {
			return false, false
		}
		x.inject()
		x.write(line)
		x.write(recent[max(0, len(recent)-x.fault.Count)])
	case Garble:
		x.inject()
		line = bytes.Clone(line)
		garble(line, cut, x.fault.Count)
		x.write(line)
	default:
		return false, false
	}
	return true, false
}

// first returns the first resourceVersion in a text: a list's own.
func first(b []byte) (rv uint64) {
	_, after, ok := strings.Cut(string(b[:min(len(b), 300)]), `"resourceVersion":"`)
	if ok {
		_, _ = fmt.Sscanf(after, "%d", &rv)
	}
	return rv
}
