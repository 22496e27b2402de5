// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

var resources = []informertest.Resource{informertest.Pods, informertest.Leases, informertest.Events}

// A replica is one of the programs.
type replica struct {
	stop  func() error // as a signal does; it returns what run returns
	ended func() error // waits for that
	apart atomic.Bool  // its writes fail
}

var errApart = errors.New("no route to the API server")

// start starts a replica.
func start(t *testing.T, network *informertest.Network, name string) *replica {
	t.Helper()
	r := &replica{}
	ctx, cancel := context.WithCancel(t.Context())
	config := &rest.Config{Host: network.URL().String(), Transport: transport(func(req *http.Request) (*http.Response, error) {
		if r.apart.Load() && req.Method != http.MethodGet {
			return nil, errApart
		}
		return network.RoundTrip(req)
	})}
	config.ContentType = "application/json" // the API server of the test has no protobuf
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, config, name, informer.Options{JSON: true, DetectMutation: true}) }()
	r.ended = func() error { return <-ended }
	r.stop = func() error {
		cancel()
		return r.ended()
	}
	return r
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A cluster is an API server without controllers.
type cluster struct {
	*informertest.Server
	t *testing.T
}

func (c *cluster) pod(name, image string) {
	c.Put("pods", fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns"},"spec":{"containers":[{"name":"c","image":%q}]}}`, name, image))
}

// check compares the replica that holds the lease, and the names of the Pods for which there
// are Events.
func (c *cluster) check(holder string, pods ...string) {
	c.t.Helper()
	var lease coordinationv1.Lease
	if err := json.Unmarshal([]byte(c.Get("leases.coordination.k8s.io", "default/latest-warner")), &lease); err != nil {
		c.t.Fatal(err)
	}
	if got := lease.Spec.HolderIdentity; got == nil || *got != holder {
		c.t.Errorf("the lease has %+v, want %q", lease.Spec, holder)
	}
	var got []string
	for _, text := range c.All("events.events.k8s.io") {
		var e eventsv1.Event
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			c.t.Fatal(err)
		}
		if e.Reason != "LatestImage" || e.Type != "Warning" || e.Regarding.Kind != "Pod" {
			c.t.Errorf("the Event %s", text)
		}
		got = append(got, e.Regarding.Name)
	}
	if slices.Sort(got); !slices.Equal(got, pods) {
		c.t.Errorf("there are Events of %v, want %v", got, pods)
	}
}

// TestReplicas: one replica works at a time. The next one follows at once if the first
// ends, and after the lease has run out if that is cut off. A new leader begins with the
// Pods that exist.
func TestReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := informertest.New(informertest.Options{Resources: resources})
		network := informertest.NewNetwork(api)
		defer network.Close()
		c := &cluster{api, t}
		a := start(t, network, "a")
		time.Sleep(time.Second)
		b := start(t, network, "b")
		c.pod("one", "app:latest")
		c.pod("two", "app:v1")
		time.Sleep(time.Minute)
		c.check("a", "one")

		if err := a.stop(); err != nil {
			t.Error(err)
		}
		c.check("", "one") // given up
		time.Sleep(5 * time.Second)
		c.check("b", "one", "one")
		c.pod("three", "app:latest")
		time.Sleep(time.Second)
		c.check("b", "one", "one", "three")

		b.apart.Store(true)
		d := start(t, network, "d")
		time.Sleep(11 * time.Second)
		c.check("b", "one", "one", "three") // the lease has not run out
		if err := b.ended(); !errors.Is(err, errLost) {
			t.Errorf("the replica that is cut off: %v", err)
		}
		time.Sleep(10 * time.Second)
		c.check("d", "one", "one", "one", "three", "three")
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestStoppedWaiting: a replica that does not lead ends at once.
func TestStoppedWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := informertest.New(informertest.Options{Resources: resources})
		network := informertest.NewNetwork(api)
		defer network.Close()
		a := start(t, network, "a")
		time.Sleep(time.Second)
		b := start(t, network, "b")
		time.Sleep(time.Second)
		began := time.Now()
		if err := b.stop(); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		(&cluster{api, t}).check("a")
		if err := a.stop(); err != nil {
			t.Error(err)
		}
	})
}
