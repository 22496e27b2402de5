// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// connect chooses the server; live is for tables that update in place, which read moments of
// their own. The caller calls end when the command is done.
func (c *command) connect(ctx context.Context, live bool) (end func(), err error) {
	end = func() {}
	server, err := c.flags.Choose(ctx)
	if err != nil || c.at == "" {
		return end, err
	}
	if server == "" {
		server = c.flags.UseContext(ctx)
	}
	if server == "" {
		if server, err = c.flags.UseService(ctx); err != nil {
			return end, err
		}
	}
	if server == "" {
		return end, fmt.Errorf("--at needs a gateway, which records the past: name it with --server, start one for this context with '%s serve', or install one in the cluster", c.program)
	}
	moment, err := c.Moment(ctx, c.flags, c.at)
	if err != nil {
		return end, err
	}
	if live {
		c.at = strings.TrimPrefix(moment, "/at/")
		return end, nil
	}
	if c.speed != 0 {
		wrap := c.flags.Wrap
		c.flags.Wrap = func(base http.RoundTripper) http.RoundTripper { return &replay{wrap(base), c.speed} }
	}
	// kubectl's cache is keyed by the server's URL, which differs each time.
	cache, err := os.MkdirTemp("", "watchkeeper-get-")
	if err != nil {
		return end, err
	}
	*c.flags.CacheDir = cache
	c.flags.Use(server + moment)
	return func() { os.RemoveAll(cache) }, nil //nolint:errcheck // a temporary directory
}

// A replay asks for watches of the past at a speed.
type replay struct {
	base  http.RoundTripper
	speed float64
}

// RoundTrip implements http.RoundTripper.
func (p *replay) RoundTrip(r *http.Request) (*http.Response, error) {
	if query := r.URL.Query(); query.Get("watch") != "" {
		query.Set("speed", strconv.FormatFloat(p.speed, 'f', -1, 64))
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	return p.base.RoundTrip(r)
}
