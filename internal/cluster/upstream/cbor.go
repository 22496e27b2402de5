// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// maxCBORAge is how long the API server's answer on CBOR is used.
	maxCBORAge  = time.Minute
	cborTimeout = 2 * time.Second
)

// A CBOROffer knows whether the API server offers a resource in CBOR. It is safe
// for concurrent use.
type CBOROffer struct {
	up       *Server
	id       kube.Resource
	inflight *Inflight[bool]

	mu      sync.Mutex // guards the fields below
	at      time.Time
	offered bool
}

// NewCBOROffer returns the CBOROffer of a resource. It sends no request.
func NewCBOROffer(up *Server, id kube.Resource, b *Background) *CBOROffer {
	return &CBOROffer{up: up, id: id, inflight: NewInflight[bool](b, cborTimeout)}
}

func (c *CBOROffer) last() (offered, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offered, time.Since(c.at) < maxCBORAge
}

// Offered asks the API server for a list of one object in CBOR, unless it was asked
// within the last minute. Without an answer it returns false.
func (c *CBOROffer) Offered(ctx context.Context) bool {
	if offered, fresh := c.last(); fresh {
		return offered
	}
	offered, _ := c.inflight.Do(ctx, "", func(ctx context.Context) (bool, error) {
		// The API server ignores the limit at RV 0.
		req := c.up.NewRequest(ctx, http.MethodGet, c.id.Path(), "limit=1")
		req.Header.Set("Accept", "application/cbor")
		resp, err := c.up.Transport.RoundTrip(req)
		if err != nil {
			return false, err
		}
		resp.Body.Close()
		offered := resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/cbor")
		c.mu.Lock()
		defer c.mu.Unlock()
		c.at, c.offered = time.Now(), offered
		return offered, nil
	})
	return offered
}
