// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package passthrough

import (
	"context"
	"net/http"
	"path"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

// maxSilence is how long a request waits for an API server that is known not to answer. Without
// it, the handshakes of an API server that is frozen take three quarters of a minute to fail.
const maxSilence = 3 * time.Second

// limit gives up a request that the API server does not answer while it is known not to, until
// ctx ends. A request that may change something is only given up before it is sent.
func (p *Handler) limit(ctx context.Context, x *exchange, giveUp context.CancelCauseFunc) {
	for wait := maxSilence; ; wait = time.Second {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		silent := p.Upstream.Contact()
		if silent.Err != nil && !silent.Answers() && ctx.Err() == nil && (x.onlyReads || !x.connected.Load()) {
			giveUp(errSilent)
			return
		}
	}
}

// onlyReads reports whether a request changes nothing, even if it is carried out later.
func onlyReads(r *http.Request) bool {
	return request.IsSafe(r.Method) && !request.IsUpgrade(r) && !request.Connects(request.Subresource(path.Clean(r.URL.Path)))
}
