// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

var widgetResource = informertest.Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true, Status: true}

const widgetsName = "widgets.example.com"

// A cluster is an API server with informers of it, in a bubble.
type cluster struct {
	*informertest.Server
	src                        *informer.Source
	widgets, configMaps, nodes *informer.Informer[json.RawMessage]
}

// simulate calls a test in a bubble.
func simulate(t *testing.T, server informertest.Options, opts informer.Options, test func(*testing.T, *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		server.Resources = []informertest.Resource{widgetResource, informertest.ConfigMaps, informertest.Nodes}
		c := &cluster{Server: informertest.New(server)}
		network := informertest.NewNetwork(c)
		defer network.Close()
		c.src = informer.NewSource(network.URL(), network)
		newInformer := func(r informertest.Resource) *informer.Informer[json.RawMessage] {
			return informer.New(c.src, informer.Resource{Group: r.Group, Version: r.Version, Name: r.Name}, informer.Raw(), opts)
		}
		c.widgets, c.configMaps, c.nodes = newInformer(widgetResource), newInformer(informertest.ConfigMaps), newInformer(informertest.Nodes)
		test(t, c)
	})
}

func (c *cluster) putWidget(name string) {
	c.Put(widgetsName, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns"}}`, name))
}

// putConfigMap puts a ConfigMap that a Widget owns, or nobody.
func (c *cluster) putConfigMap(name, owner string) {
	owners := "[]"
	if owner != "" {
		owners = fmt.Sprintf(`[{"apiVersion":"v1","kind":"Node","name":"n"},{"apiVersion":"example.com/v1","kind":"Widget","name":%q,"uid":"u","controller":true}]`, owner)
	}
	c.Put("configmaps", fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","ownerReferences":%s}}`, name, owners))
}

var widgetKind = Kind{Group: "example.com", Kind: "Widget"}

// A recorder has the keys of calls.
type recorder struct {
	mu   sync.Mutex
	keys []string
}

func (r *recorder) reconcile(_ context.Context, key informer.Key) (Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = append(r.keys, key.String())
	return Result{}, nil
}

// read returns the keys of the calls since the last read, sorted, once nothing can happen
// without time.
func (r *recorder) read() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := slices.Sorted(slices.Values(r.keys))
	r.keys = nil
	return strings.Join(keys, " ")
}

// start runs a group until the test ends or stop is called, which returns Run's error.
func start(t *testing.T, g *Group) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-ended
	}
}

// settle waits longer than any pause after a failure.
func settle() { time.Sleep(time.Minute) }
