// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// reforwardDelay is the time between attempts to reach another Pod.
const reforwardDelay = time.Second

// A forwarding leads a port of the loopback address to a Pod, as kubectl port-forward does,
// and to another Pod when that one is gone.
type forwarding struct {
	config    *rest.Config
	client    corev1client.CoreV1Interface
	namespace string
	// find returns the Pod, and the port of its container.
	find func(context.Context) (pod string, port int32, err error)
}

// start begins to forward, until ctx ends, and returns the address on this machine.
func (f *forwarding) start(ctx context.Context) (address string, err error) {
	local, ended, err := f.open(ctx, 0)
	if err != nil {
		return "", err
	}
	go f.keep(ctx, local, ended)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(local))), nil
}

// keep forwards again, from the same port, when that has ended.
func (f *forwarding) keep(ctx context.Context, local uint16, ended <-chan error) {
	for {
		<-ended
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(reforwardDelay):
			}
			var err error
			if _, ended, err = f.open(ctx, local); err == nil {
				break
			}
		}
	}
}

// open forwards a port, or a free one if it is 0, to a Pod. The channel gets a value when that
// has ended.
func (f *forwarding) open(ctx context.Context, local uint16) (port uint16, ended <-chan error, err error) {
	looking, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	pod, remote, err := f.find(looking)
	if err != nil {
		return 0, nil, err
	}
	dialer, err := f.dialer(pod)
	if err != nil {
		return 0, nil, err
	}
	// Its log says what a client sees anyway: that connections end.
	opened, closeIt := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(opened, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("%d:%d", local, remote)}, ready, nil, nil)
	if err != nil {
		closeIt()
		return 0, nil, err
	}
	end := make(chan error, 1)
	go func() {
		defer closeIt()
		end <- forwarder.ForwardPorts()
	}()
	select {
	case <-ready:
	case err = <-end:
	case <-looking.Done():
		err = looking.Err()
	}
	if err != nil {
		closeIt()
		return 0, nil, fmt.Errorf("port-forward to Pod %s: %w", pod, err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil || len(ports) != 1 {
		closeIt()
		return 0, nil, errors.Join(err, fmt.Errorf("port-forward to Pod %s: %d ports", pod, len(ports)))
	}
	return ports[0].Local, end, nil
}

// dialer returns what connects to the kubelet of a Pod: through a WebSocket, or as API servers
// before 1.31 want it.
func (f *forwarding) dialer(pod string) (httpstream.Dialer, error) {
	u := f.client.RESTClient().Post().Resource("pods").Namespace(f.namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(f.config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, f.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(dialer, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
