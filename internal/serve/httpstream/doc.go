// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpstream writes answers to clients: bodies, and watches over HTTP/2, over
// hijacked HTTP/1.1 connections, and over WebSockets, with or without gzip.
//
// A [Watch] writes the events of a [Source]. It is one goroutine, which waits for the
// source, for its timer ([watchTimer]), and for the client to disconnect or the
// gateway to shut down. While it is idle it keeps neither the request nor any state
// (T10). A client that reads slowly delays its own watch and no other. A client that
// reads nothing for [WriteTimeout] is disconnected, and so is one that reads so slowly
// that it holds a list, initial events or a watch that is over for much longer than
// they take ([DeadlineWriter]). A [Tracker] counts all requests
// and watches, and ends them when the gateway shuts down.
//
// An event that several watches send at the same time is encoded once (wire.Frame).
package httpstream
