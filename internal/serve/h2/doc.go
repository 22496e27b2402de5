// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package h2 is the HTTP/2 server of the gateway's listener (RFC 9113). It serves a
// net/http handler as net/http's own HTTP/2 does, and delivers watches at less cost.
//
// A connection has one or two goroutines. The reader reads frames, keeps the state of the
// streams, and starts a goroutine for each request. Only the writer writes, and it runs
// only while there is something to write: it collects frames of all streams that have
// something to send in one batch, which is encrypted in full TLS records and written in
// one system call.
//
//	reader ── frames in ──▶ streams ── handlers: Write ──┐
//	                        control frames ──────────────┼──▶ writer ── a batch ──▶ TLS, TCP
//	                        feeds: Next ◀────────────────┘
//
// A handler's Write waits until the writer has taken its bytes. A response that is a
// [Feed] has no goroutine: the writer pulls it when it is woken and the client's window
// has room. So an idle watch costs its state and nothing more, a slow stream keeps one
// event that it could not send, and streams take turns.
//
// # Locks
//
// conn.mu guards the streams and the queue of control frames. conn.readyMu guards the
// list of streams to serve; it is a leaf, which [Stream.Wake] takes, so that Wake may be
// called with other locks held. Feeds are called without any lock.
//
// # Bounds
//
// What a client can make the server keep or do is bounded: see limits.go.
package h2
