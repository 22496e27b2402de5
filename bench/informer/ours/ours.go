// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package ours adapts this project's informer to bench/informer.
package ours

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
	"github.com/watchkeeper/watchkeeper/informer"
)

// Mode returns a mode of the informer. opts is called once for each client.
func Mode[T any](name, encoding string, codec informer.Codec[T], opts func() informer.Options) measure.Mode {
	return measure.Mode{Name: name, Library: "watchkeeper", Encoding: encoding, New: func() measure.Client {
		return &client[T]{codec: codec, opts: opts()}
	}}
}

type client[T any] struct {
	codec    informer.Codec[T]
	opts     informer.Options
	informer *informer.Informer[T]
	handled  atomic.Int64
	synced   atomic.Bool
	decode   atomic.Bool
}

func (c *client[T]) Start(ctx context.Context, target measure.Target) error {
	base, err := url.Parse(target.URL)
	if err != nil {
		return err
	}
	// As informer.FromURL, which cannot have a CA.
	transport := &http.Transport{ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 2 << 20}}
	if target.CA != nil {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(target.CA)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	c.informer = informer.New(informer.NewSource(base, transport), informer.Resource{Version: "v1", Name: "pods"}, c.codec, c.opts)
	count := func(now informer.Ref[T]) {
		if c.decode.Load() {
			if _, err := now.Object(); err != nil {
				log.Print(err)
			}
		}
		c.handled.Add(1)
	}
	c.informer.Handle(informer.Handler[T]{
		Add:    count,
		Update: func(_, now informer.Ref[T]) { count(now) },
		Delete: count,
		Synced: func() { c.synced.Store(true) },
	})
	go c.informer.Run(ctx)
	return nil
}

func (c *client[T]) Decode(d bool)  { c.decode.Store(d) }
func (c *client[T]) Synced() bool   { return c.synced.Load() }
func (c *client[T]) Handled() int64 { return c.handled.Load() }
func (c *client[T]) Len() int       { return c.informer.Len() }

func (c *client[T]) ResourceVersion(namespace, name string) string {
	o, ok := c.informer.Get(informer.Key{Namespace: namespace, Name: name})
	if !ok {
		return ""
	}
	return o.RV()
}
