// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenarios tests a controller of Widgets, in virtual time. The example is tested with
// it, and so is the same controller written with controller-runtime (clients/widget).
package scenarios

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

var widgets = informertest.Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true, Status: true}

const path = "/apis/example.com/v1/namespaces/ns/widgets"

// A widget is what the scenarios read of one.
type widget struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		ObservedGeneration int64
		Ready              bool
	}
}

// Test runs each scenario with a controller that run runs until its context ends. retry is
// how long the controller may take to call again what has failed for some minutes.
func Test(t *testing.T, retry time.Duration, run func(context.Context, *rest.Config) error) {
	for name, scenario := range map[string]func(*cluster){
		"lifecycle": lifecycle, "ttl": ttl,
		"foreign":     func(c *cluster) { foreign(c, retry) },
		"unavailable": func(c *cluster) { outage(c, http.StatusServiceUnavailable) },
		"not found":   func(c *cluster) { outage(c, http.StatusNotFound) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, run, scenario) })
		})
	}
}

// A cluster is an API server without controllers but the tested one.
type cluster struct {
	*informertest.Server
	t      *testing.T
	client *http.Client
}

// simulate runs a scenario in a bubble, whose clock jumps when nothing is left to do.
func simulate(t *testing.T, run func(context.Context, *rest.Config) error, scenario func(*cluster)) {
	api := informertest.New(informertest.Options{Resources: []informertest.Resource{widgets, informertest.ConfigMaps}})
	network := informertest.NewNetwork(api)
	defer network.Close()
	config := &rest.Config{Host: network.URL().String(), Transport: network}
	config.ContentType = "application/json" // the API server of the test has no protobuf
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, config) }()
	scenario(&cluster{api, t, network.Client()})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// settle waits until the controller has done what it can do now.
func settle() { time.Sleep(time.Minute) }

// do sends a request for a Widget.
func (c *cluster) do(method, path, body string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, "http://api.test"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		c.t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
	settle()
}

// get returns an object; its name is "" if there is none.
func get[T any](c *cluster, resource, key string) (o T) {
	c.t.Helper()
	if text := c.Get(resource, key); text != "" {
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			c.t.Fatal(err)
		}
	}
	return o
}

func (c *cluster) widget(name string) widget {
	return get[widget](c, widgets.FullName(), "ns/"+name)
}

func (c *cluster) configMap(name string) corev1.ConfigMap {
	return get[corev1.ConfigMap](c, "configmaps", "ns/"+name)
}

// check compares the ConfigMap and the status of a Widget with what it asks for.
func (c *cluster) check(name string, generation int64, data map[string]string) {
	c.t.Helper()
	w, m := c.widget(name), c.configMap(name)
	if !maps.Equal(m.Data, data) || !metav1.IsControlledBy(&m, &w) {
		c.t.Errorf("the ConfigMap has %v, of %v; want %v", m.Data, m.OwnerReferences, data)
	}
	if w.Generation != generation || w.Status.ObservedGeneration != generation || !w.Status.Ready || len(w.Finalizers) != 1 {
		c.t.Errorf("generation %d, finalizers %v, status %+v; want generation %d", w.Generation, w.Finalizers, w.Status, generation)
	}
}

// lifecycle creates, changes and deletes a Widget and its ConfigMap.
func lifecycle(c *cluster) {
	c.do("POST", path, `{"metadata":{"name":"a"},"spec":{"data":{"x":"1"}}}`)
	c.check("a", 1, map[string]string{"x": "1"})

	c.do("PATCH", path+"/a", `{"spec":{"data":{"x":"2"}}}`)
	c.check("a", 2, map[string]string{"x": "2"})

	c.do("PATCH", "/api/v1/namespaces/ns/configmaps/a", `{"data":{"x":"edited","y":"too"}}`)
	c.check("a", 2, map[string]string{"x": "2"})

	c.do("DELETE", "/api/v1/namespaces/ns/configmaps/a", "")
	c.check("a", 2, map[string]string{"x": "2"})

	c.do("PATCH", path+"/a/status", `{"status":{"ready":false}}`)
	c.check("a", 2, map[string]string{"x": "2"})

	c.do("DELETE", path+"/a", "")
	if all := len(c.All(widgets.FullName())) + len(c.All("configmaps")); all > 0 {
		c.t.Errorf("%d objects remain: %v, %v", all, c.All(widgets.FullName()), c.All("configmaps"))
	}
}

// ttl: a Widget is deleted when its time has passed, which may be changed.
func ttl(c *cluster) {
	for name, ttl := range map[string]string{"short": "1h", "longer": "1h", "shorter": "9h"} {
		c.do("POST", path, `{"metadata":{"name":"`+name+`"},"spec":{"ttl":"`+ttl+`"}}`)
	}
	c.do("PATCH", path+"/longer", `{"spec":{"ttl":"3h"}}`)
	c.do("PATCH", path+"/shorter", `{"spec":{"ttl":"2h"}}`)
	for hour, want := range []map[string]bool{
		{"short": true, "longer": true, "shorter": true},
		{"longer": true, "shorter": true},
		{"longer": true},
		{},
	} {
		for _, name := range []string{"short", "longer", "shorter"} {
			w, m := c.widget(name), c.configMap(name)
			if (w.Name != "") != want[name] || (m.Name != "") != want[name] {
				c.t.Errorf("after %d hours, %s: Widget %q, ConfigMap %q", hour, name, w.Name, m.Name)
			}
		}
		time.Sleep(time.Hour)
	}
}

// foreign: a ConfigMap of somebody else is left as it is, until it is deleted. Its deletion
// calls for no Widget, as it was none's: the retry finds that it is gone.
func foreign(c *cluster, retry time.Duration) {
	c.Put("configmaps", `{"metadata":{"name":"a","namespace":"ns"},"data":{"x":"theirs"}}`)
	c.do("POST", path, `{"metadata":{"name":"a"},"spec":{"data":{"x":"1"}}}`)
	if w, m := c.widget("a"), c.configMap("a"); m.Data["x"] != "theirs" || w.Status.Ready || w.Status.ObservedGeneration != 1 {
		c.t.Errorf("the ConfigMap has %v, status %+v", m.Data, w.Status)
	}
	c.do("POST", path, `{"metadata":{"name":"b"},"spec":{}}`)
	c.do("PATCH", "/api/v1/namespaces/ns/configmaps/b", `{"metadata":{"ownerReferences":null}}`)
	c.do("DELETE", path+"/b", "")
	if w, m := c.widget("b"), c.configMap("b"); w.Name != "" || m.Name == "" {
		c.t.Errorf("after its deletion: Widget %q, ConfigMap %q", w.Name, m.Name)
	}
	c.do("DELETE", "/api/v1/namespaces/ns/configmaps/a", "")
	time.Sleep(retry)
	c.check("a", 1, map[string]string{"x": "1"})
}

// outage: what has changed while the API server answered with code is reconciled afterwards.
func outage(c *cluster, code int) {
	c.do("POST", path, `{"metadata":{"name":"a"},"spec":{"data":{"x":"1"}}}`)
	end := c.Control(func(w http.ResponseWriter, _ *informertest.Request, _ func(http.ResponseWriter)) {
		informertest.WriteStatus(w, code, "No", "no")
	})
	c.CutWatches()
	c.Delete("configmaps", "ns/a")
	settle()
	end()
	settle()
	c.check("a", 1, map[string]string{"x": "1"})
}
