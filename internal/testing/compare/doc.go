// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package compare sends a request to two endpoints of the Kubernetes API and
// reports how their answers differ: status, headers, body, framing and end. It
// reads watches in every framing, and WebSockets.
//
// The first endpoint is called want: it is the API server. The second, got, is
// the gateway in front of it. Parts that necessarily differ between two servers, or
// two times, are ignored: see [Diff]. Only tests import this package.
package compare
