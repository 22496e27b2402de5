// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// A churned is a kind of object that a churn creates: up to count of them, each with one
// of many forms of spec.
type churned struct {
	resource         schema.GroupVersionResource
	apiVersion, kind string
	count            int
	weight           int // how many changes one of its changes counts for
	spec             func(n int, color string) map[string]any
}

type object = map[string]any

var allChurned = []churned{
	{configMaps, "v1", "ConfigMap", 20, 1, func(n int, _ string) object {
		return object{"data": object{"n": fmt.Sprint(n)}}
	}},
	{widgets, "clients.example.com/v1", "Widget", 15, 1, func(n int, color string) object {
		return object{"spec": object{"size": n, "color": color}}
	}},
	// A change of a Deployment is followed by some 30 writes of controllers.
	{deployments, "apps/v1", "Deployment", 3, 5, func(n int, color string) object {
		return object{"spec": object{
			"replicas": n % 4,
			"selector": object{"matchLabels": object{"app": "churn"}},
			"template": object{
				"metadata": object{"labels": object{"app": "churn"}},
				"spec":     object{"containers": []object{{"name": "c", "image": "churn:" + color}}},
			},
		}}
	}},
	{pods, "v1", "Pod", 10, 1, func(int, string) object {
		return object{"spec": object{"containers": []object{{"name": "c", "image": "churn"}}}}
	}},
}

// A churn creates, changes and deletes objects in a namespace. While the API server is
// down it only retries.
type churn struct {
	stop    func()
	changes []atomic.Int64 // by kind
}

// startChurn changes every kind some five times a second, Deployments once, each in
// its own goroutine: after a start of the API server, requests for custom resources
// wait for seconds.
func startChurn(t *testing.T, ns string) *churn {
	t.Helper()
	client, err := dynamic.NewForConfig(direct.config())
	if err != nil {
		t.Fatal(err)
	}
	c := &churn{changes: make([]atomic.Int64, len(allChurned))}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	c.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(c.stop)
	for i, kind := range allChurned {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for ctx.Err() == nil {
				if kind.change(ctx, client, ns, random) == nil {
					c.changes[i].Add(int64(kind.weight))
				}
				time.Sleep(time.Duration(kind.weight) * 200 * time.Millisecond)
			}
		})
	}
	return c
}

// wait waits until every kind has changed n more times.
func (c *churn) wait(t *testing.T, n int64) {
	t.Helper()
	for i := range c.changes {
		enough := c.changes[i].Load() + n
		eventually(t, "enough changes", func() string {
			if have := c.changes[i].Load(); have < enough {
				return fmt.Sprintf("%d of %s, want %d", have, allChurned[i].kind, enough)
			}
			return ""
		})
	}
}

// total returns the number of changes so far.
func (c *churn) total() (n int64) {
	for i := range c.changes {
		n += c.changes[i].Load()
	}
	return n
}

// change makes one change: it creates a missing object, and changes or, one time in
// four, deletes an existing one.
func (k *churned) change(ctx context.Context, client dynamic.Interface, ns string, random *rand.Rand) error {
	name := fmt.Sprintf("churn-%d", random.IntN(k.count))
	color := []string{"red", "green", "blue"}[random.IntN(3)]
	fields := k.spec(random.IntN(1000), color)
	fields["metadata"] = object{"name": name, "namespace": ns, "labels": object{"color": color}}
	objects := client.Resource(k.resource).Namespace(ns)
	if random.IntN(4) == 0 {
		return objects.Delete(ctx, name, metav1.DeleteOptions{})
	}
	if k.kind == "Pod" {
		delete(fields, "spec") // an existing object keeps its spec
	}
	patch, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	if _, err = objects.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	if k.kind == "Pod" {
		fields["spec"] = k.spec(0, color)["spec"]
	}
	fields["apiVersion"], fields["kind"] = k.apiVersion, k.kind
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	var o unstructured.Unstructured // whose numbers are int64
	if err := o.UnmarshalJSON(text); err != nil {
		return err
	}
	_, err = objects.Create(ctx, &o, metav1.CreateOptions{})
	return err
}
