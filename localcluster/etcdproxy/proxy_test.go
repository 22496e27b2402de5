// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package etcdproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const otherMethod = "/etcdserverpb.KV/Range"

// echo is an etcd that sends each message back, and ends a call with an error after "end".
func echo(_ any, stream grpc.ServerStream) error {
	for {
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		if string(message) == "end" {
			stream.SetTrailer(metadata.Pairs("last", "words"))
			return status.Error(codes.OutOfRange, "compacted")
		}
		if err := stream.SendMsg(message); err != nil {
			return err
		}
	}
}

// startTest returns a proxy in front of echo, and a client of it.
func startTest(t *testing.T) (*Proxy, *grpc.ClientConn) {
	t.Helper()
	certificate := httptest.NewTLSServer(nil)
	certificate.Close()
	server := &tls.Config{Certificates: certificate.TLS.Certificates}
	client := &tls.Config{InsecureSkipVerify: true} // the certificates are localcluster's part
	listen := func() net.Listener {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return listener
	}
	etcd := grpc.NewServer(grpc.Creds(credentials.NewTLS(server)), grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(echo))
	upstream, listener := listen(), listen()
	go func() { _ = etcd.Serve(upstream) }() // until Stop
	t.Cleanup(etcd.Stop)
	p, err := Start(listener, server, upstream.Addr().String(), client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	conn, err := grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(credentials.NewTLS(client)), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return p, conn
}

func open(ctx context.Context, t *testing.T, conn *grpc.ClientConn, method string) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func write(t *testing.T, stream grpc.ClientStream, message string) {
	t.Helper()
	if err := stream.SendMsg([]byte(message)); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, stream grpc.ClientStream, message string) {
	t.Helper()
	var got []byte
	if err := stream.RecvMsg(&got); err != nil || string(got) != message {
		t.Fatalf("received %q, %v, want %q", got, err, message)
	}
}

// wantEnd checks that the status and the trailer of echo arrive.
func wantEnd(t *testing.T, stream grpc.ClientStream) {
	t.Helper()
	err := stream.RecvMsg(new([]byte))
	if s := status.Convert(err); s.Code() != codes.OutOfRange || s.Message() != "compacted" {
		t.Errorf("the call ended with %v", err)
	}
	if last := stream.Trailer().Get("last"); len(last) != 1 || last[0] != "words" {
		t.Errorf("the trailer is %v", stream.Trailer())
	}
}

// TestHold: a watch receives nothing while it is held back, and then everything in
// order, also its end. Other calls are not delayed.
func TestHold(t *testing.T) {
	p, conn := startTest(t)
	watch, other := open(t.Context(), t, conn, watchMethod), open(t.Context(), t, conn, otherMethod)
	write(t, watch, "before")
	want(t, watch, "before")

	p.SetLag(Lag{Delay: Hold})
	received := make(chan string, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2 {
			var message []byte
			if err := watch.RecvMsg(&message); err != nil {
				received <- err.Error()
				return
			}
			received <- string(message)
		}
	}()
	for _, message := range []string{"1", "2", "end"} {
		write(t, watch, message)
	}
	for _, message := range []string{"a", "b"} {
		write(t, other, message)
		want(t, other, message)
	}
	write(t, other, "end")
	wantEnd(t, other)
	if len(received) > 0 {
		t.Errorf("a watch that is held back received %s", <-received)
	}
	p.SetLag(Lag{})
	<-done
	if first, second := <-received, <-received; first != "1" || second != "2" {
		t.Errorf("after the lag, the watch received %s, %s", first, second)
	}
	wantEnd(t, watch)
}

// TestUntil: a lag ends at its time.
func TestUntil(t *testing.T) {
	p, conn := startTest(t)
	watch := open(t.Context(), t, conn, watchMethod)
	p.SetLag(Lag{Delay: Hold, Until: time.Now().Add(50 * time.Millisecond)})
	write(t, watch, "1")
	want(t, watch, "1")
	if lag := p.Lag(); lag != (Lag{}) {
		t.Errorf("after the end of a lag, it is %v", lag)
	}
}

// TestDelay: each message is late by the delay.
func TestDelay(t *testing.T) {
	p, conn := startTest(t)
	watch := open(t.Context(), t, conn, watchMethod)
	p.SetLag(Lag{Delay: 100 * time.Millisecond})
	began := time.Now()
	write(t, watch, "1")
	want(t, watch, "1")
	if late := time.Since(began); late < 100*time.Millisecond {
		t.Errorf("the message was late by %v", late)
	}
}

// TestCancel: a client can end a watch that is held back, and Close ends the others.
func TestCancel(t *testing.T) {
	p, conn := startTest(t)
	p.SetLag(Lag{Delay: Hold})
	ctx, cancel := context.WithCancel(t.Context())
	for _, watch := range []grpc.ClientStream{open(ctx, t, conn, watchMethod), open(t.Context(), t, conn, watchMethod)} {
		write(t, watch, "1")
	}
	cancel()
	p.Close()
	if err := p.lag.wait(ctx, time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting in a call that has ended: %v", err)
	}
}
