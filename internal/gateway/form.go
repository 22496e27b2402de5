// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/wire"
)

const (
	// unwritableFor is how long a form in which a resource could not be
	// written is left to the API server.
	unwritableFor = time.Minute
	// cborFresh is how long the API server's word on CBOR stands.
	cborFresh   = time.Minute
	cborTimeout = 2 * time.Second
)

// unwritable remembers in which forms a resource could not be written of late,
// so that a client whose watch had to end for that does not come here again.
type unwritable struct {
	mu    sync.Mutex // guards since
	since map[wire.Form]time.Time
}

func (u *unwritable) add(f wire.Form) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since == nil {
		u.since = map[wire.Form]time.Time{}
	}
	u.since[f] = time.Now()
}

func (u *unwritable) has(f wire.Form) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, ok := u.since[f]
	return ok && time.Since(at) < unwritableFor
}

// A cborOffer is whether the API server offers a resource in CBOR.
type cborOffer struct {
	asked shared[bool]

	mu      sync.Mutex // guards what follows
	at      time.Time
	offered bool
}

func (c *cborOffer) last() (offered, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offered, time.Since(c.at) < cborFresh
}

// offersCBOR asks the API server for a list of one in CBOR, unless it has just
// been asked.
func (res *resource) offersCBOR(ctx context.Context, up *Upstream) bool {
	c := &res.cbor
	if offered, fresh := c.last(); fresh {
		return offered
	}
	offered, _ := c.asked.get(ctx, "", func(ctx context.Context) (bool, error) {
		// At RV 0 the limit would be ignored.
		req := up.NewRequest(ctx, http.MethodGet, res.id.Path(), "limit=1")
		req.Header.Set("Accept", "application/cbor")
		resp, err := up.Transport.RoundTrip(req)
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
