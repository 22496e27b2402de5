// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/plugin/pkg/audit/buffered"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// lossInterval is the minimum time between two messages of lost events.
const lossInterval = time.Minute

// A backend is kube-apiserver's log backend in one of its modes, except that lost events
// are counted, and logged once a minute. kube-apiserver logs each of them with its
// content, which turns a full disk into a second one.
//
//	batch:           backend ──▶ buffered ──▶ taken ──▶ log ──▶ logWriter
//	blocking:        backend ──▶ log ──▶ logWriter
type backend struct {
	next     audit.Backend
	out      io.WriteCloser
	losses   losses
	capacity int64 // of the buffer; 0 without

	// strict is held while an event is written in mode blocking-strict, to see whether it
	// was; nil in the others.
	strict *sync.Mutex

	events  atomic.Int64 // sent to next
	pending atomic.Int64 // events in the buffer

	// mu is held for reading while an event is sent to next, since the buffer may not be
	// closed meanwhile. It guards closed.
	mu     sync.RWMutex
	closed bool
}

func newBackend(o Options, out io.WriteCloser, log *slog.Logger) *backend {
	b := &backend{out: out}
	b.losses.path, b.losses.log = o.LogPath, log
	b.next = pluginlog.NewBackend(&logWriter{out: out, losses: &b.losses}, o.LogFormat, auditv1.SchemeGroupVersion)
	switch o.LogMode {
	case ModeBlockingStrict:
		b.strict = new(sync.Mutex)
	case ModeBatch:
		b.capacity = int64(o.LogBatchBufferSize)
		// One event per batch is kube-apiserver's default for the log: a larger batch is
		// written event by event, too.
		b.next = buffered.NewBackend(taken{b.next, &b.pending}, buffered.BatchConfig{BufferSize: o.LogBatchBufferSize, MaxBatchSize: 1})
	}
	return b
}

// ProcessEvents implements audit.Sink. Its result is false only if a request has to be
// refused.
func (b *backend) ProcessEvents(events ...*auditinternal.Event) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n := int64(len(events))
	if b.closed {
		b.losses.add(n, "the gateway has shut down", nil)
		return b.strict == nil
	}
	if b.capacity > 0 && b.pending.Add(n) > b.capacity {
		b.pending.Add(-n)
		b.losses.add(n, "the buffer of --audit-log-batch-buffer-size is full", nil)
		return true
	}
	b.events.Add(n)
	if b.strict == nil {
		b.next.ProcessEvents(events...)
		return true
	}
	b.strict.Lock()
	defer b.strict.Unlock()
	before := b.losses.count.Load()
	return b.next.ProcessEvents(events...) && b.losses.count.Load() == before
}

func (b *backend) run(ctx context.Context) error {
	stop := make(chan struct{})
	if err := b.next.Run(stop); err != nil {
		return err
	}
	<-ctx.Done()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	close(stop) // after closed: the buffer is a channel, which stop closes
	b.next.Shutdown()
	return b.out.Close()
}

// taken counts the events that leave the buffer.
type taken struct {
	audit.Backend
	pending *atomic.Int64
}

func (t taken) ProcessEvents(events ...*auditinternal.Event) bool {
	defer t.pending.Add(-int64(len(events)))
	return t.Backend.ProcessEvents(events...)
}

// A logWriter writes lines to the log. It hides errors from kube-apiserver's backend, which
// would log them, and counts them as losses.
type logWriter struct {
	out    io.Writer
	losses *losses

	mu   sync.Mutex // keeps lines whole, and guards torn
	torn bool       // the last line is incomplete
}

// Write writes one line. The rest of a line that was cut off, as by a full disk, does not
// spoil the next one.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := line
	if w.torn {
		text = append([]byte("\n"), line...)
	}
	n, err := w.out.Write(text)
	if n > 0 {
		w.torn = text[n-1] != '\n'
	}
	if err != nil {
		w.losses.add(1, "the audit log cannot be written", err)
	}
	return len(line), nil
}

// losses count the events that are lost, and log that there are.
type losses struct {
	path  string
	log   *slog.Logger
	count atomic.Int64

	mu     sync.Mutex // guards logged; not held while the audit log is written
	logged time.Time
}

func (l *losses) add(n int64, why string, err error) {
	lost := l.count.Add(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.logged.IsZero() || now.Sub(l.logged) >= lossInterval {
		l.logged = now
		l.log.Error("audit events are lost: "+why, "path", l.path, "lost", lost, "err", err)
	}
}
