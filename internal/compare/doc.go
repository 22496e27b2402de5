// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package compare asks two endpoints of the Kubernetes API the same and says
// in what their answers differ: status, headers, body, framing and how it
// ended. It reads watches in every framing there is, and WebSocket.
//
// The first endpoint is called want: it is the API server. The second, got, is
// what stands in front of it. What cannot be the same for two servers, or at
// two moments, is left out: see [Diff]. Only tests import it.
package compare
