// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sync/errgroup"
)

// openGo opens watches with Go's HTTP/2 client, as many on a connection as Options allow.
func (s *Set) openGo(ctx context.Context, t Target, o Options) error {
	per := o.PerConnection
	if per == 0 {
		per = len(o.Paths)
	}
	for at := 0; at < len(o.Paths); at += per {
		client := &http2.Transport{DialTLSContext: func(ctx context.Context, _, _ string, _ *tls.Config) (net.Conn, error) {
			nc, _, err := t.dial(ctx, false)
			if err == nil {
				s.add(nc)
			}
			return nc, err
		}}
		var g errgroup.Group
		for i := range o.Paths[at:min(at+per, len(o.Paths))] {
			g.Go(func() error { return s.watchGo(ctx, client, t, at+i, o) })
			if i == 0 { // it makes the connection
				if err := g.Wait(); err != nil {
					return err
				}
			}
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// watchGo opens one watch, which ends with its connection.
func (s *Set) watchGo(ctx context.Context, client *http2.Transport, t Target, i int, o Options) error {
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "https://"+t.Address+o.Paths[i], http.NoBody)
	if err != nil {
		return err
	}
	for name, value := range withDefaults(t.Header, o.header(i)) {
		req.Header.Set(name, value)
	}
	resp, err := client.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return fmt.Errorf("watch: status %d", resp.StatusCode)
	}
	w := &s.watches[i]
	w.at = time.Now
	s.reading.Go(func() {
		defer resp.Body.Close()
		buf := make([]byte, readSize)
		for {
			n, err := resp.Body.Read(buf)
			w.data(buf[:n])
			if err != nil {
				if err == io.EOF {
					err = nil
				}
				w.end(err)
				return
			}
		}
	})
	return nil
}
