// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpstream takes answers to clients: bodies, and watches over HTTP/1.1
// connections taken over from net/http, HTTP/2, WebSockets and gzip.
//
// A [Watch] writes what a [Source] yields. It is one goroutine, which waits for the
// source, for its timer ([watchTimer]) and for the end of the client or the gateway;
// while it is idle it keeps neither the request nor any state (T10). A client that
// reads slowly holds back its own watch and no other; one that takes nothing for
// [WriteTimeout] is given up. [Tracker] knows all requests and watches, and ends
// them when the gateway shuts down.
//
// The events that several watches send at the same time are encoded once
// (wire.Frame), and written as they are.
package httpstream
