// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcdproxy forwards the gRPC calls of an API server to etcd. On request it
// delays what the API server's watches on etcd receive, and nothing else: the API
// server reads and writes etcd as before, but its watch cache lags.
//
// The delay of a message counts from its arrival at the proxy. The messages of a watch
// keep their order, and an error that ends the watch comes after them. The proxy buffers
// up to maxLate messages of each watch stream. Beyond that it does not read on, and etcd
// treats the watch as slow: it sends the rest later, or ends the watch if the rest was
// compacted.
package etcdproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

const (
	watchMethod = "/etcdserverpb.Watch/Watch"
	maxLate     = 4096
)

// Proxy serves until Close.
type Proxy struct {
	etcd    *grpc.ClientConn
	server  *grpc.Server
	lag     lag
	running sync.WaitGroup
}

// Start forwards what the listener accepts to etcd at an address. server verifies and
// answers the clients, client is for the connection to etcd. Close closes the listener.
func Start(listener net.Listener, server *tls.Config, etcd string, client *tls.Config) (*Proxy, error) {
	conn, err := grpc.NewClient(etcd,
		grpc.WithTransportCredentials(credentials.NewTLS(client)),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		// As kube-apiserver's client, and soon after a restart of etcd.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
	if err != nil {
		return nil, err
	}
	p := &Proxy{etcd: conn, lag: lag{changed: make(chan struct{})}}
	p.server = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(server)),
		grpc.ForceServerCodec(raw{}),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}), // as etcd
		grpc.UnknownServiceHandler(p.forward),
		grpc.WaitForHandlers(true),
	)
	p.running.Go(func() { _ = p.server.Serve(listener) }) // until Close
	return p, nil
}

// Close ends all calls and waits for them.
func (p *Proxy) Close() {
	p.server.Stop()
	p.etcd.Close()
	p.running.Wait()
}

// forward forwards one call, in both directions, as if it had streams of messages.
func (p *Proxy) forward(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	received, _ := metadata.FromIncomingContext(client.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(client.Context(), received))
	defer cancel()
	etcd, err := p.etcd.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	p.running.Go(func() { // ends after the return of forward
		defer cancel()
		if send(etcd, client) == nil {
			<-ctx.Done()
		}
	})
	if header, err := etcd.Header(); err != nil {
		return err
	} else if header != nil { // else the call has failed
		if err := client.SendHeader(header); err != nil {
			return err
		}
	}
	if method == watchMethod {
		return p.answerLate(ctx, client, etcd)
	}
	return answer(client, etcd)
}

// send forwards the client's messages until it has sent the last one.
func send(etcd grpc.ClientStream, client grpc.ServerStream) error {
	for {
		var message []byte
		if err := client.RecvMsg(&message); errors.Is(err, io.EOF) {
			return etcd.CloseSend()
		} else if err != nil {
			return err
		}
		if err := etcd.SendMsg(message); err != nil {
			return nil // the call has ended; answer returns its result
		}
	}
}

// answer forwards etcd's messages until the call ends, and returns its status.
func answer(client grpc.ServerStream, etcd grpc.ClientStream) error {
	for {
		var message []byte
		if err := etcd.RecvMsg(&message); err != nil {
			return end(client, etcd, err)
		}
		if err := client.SendMsg(message); err != nil {
			return err
		}
	}
}

// end returns the status of a call that etcd has ended with an error of RecvMsg.
func end(client grpc.ServerStream, etcd grpc.ClientStream, err error) error {
	client.SetTrailer(etcd.Trailer())
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// answerLate is answer with the delay.
func (p *Proxy) answerLate(ctx context.Context, client grpc.ServerStream, etcd grpc.ClientStream) error {
	type late struct {
		message []byte
		err     error // ends the call
		arrived time.Time
	}
	queue := make(chan late, maxLate)
	p.running.Go(func() { // ends with ctx at the latest
		defer close(queue)
		for {
			var l late
			l.err = etcd.RecvMsg(&l.message)
			l.arrived = time.Now()
			select {
			case queue <- l:
			case <-ctx.Done():
				return
			}
			if l.err != nil {
				return
			}
		}
	})
	for l := range queue {
		if err := p.lag.wait(ctx, l.arrived); err != nil {
			return err
		}
		if l.err != nil {
			return end(client, etcd, l.err)
		}
		if err := client.SendMsg(l.message); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// raw leaves messages encoded: a message is a []byte, or a *[]byte to receive into.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(message any) ([]byte, error) {
	if b, ok := message.([]byte); ok {
		return b, nil
	}
	return nil, fmt.Errorf("marshalling a %T", message)
}

func (raw) Unmarshal(data []byte, message any) error {
	b, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshalling into a %T", message)
	}
	*b = data
	return nil
}
