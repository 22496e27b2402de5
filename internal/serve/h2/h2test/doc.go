// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package h2test is an HTTP/2 client for tests of a server. It sends any sequence of
// frames, valid or not, and judges what the server sends: that it keeps to the client's
// flow-control windows and to the states of streams (RFC 9113, sections 5.1 and 6.9). A
// violation fails the test. The client knows nothing about the server under test, which
// may be net/http's own.
package h2test
