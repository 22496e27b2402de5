// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"slices"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// Prints the events of Pods. The type Pod has the fields that the program needs.
func Example() {
	server := apiServer(informertest.Pods, `{"nodeName":"n1"}`, false) // kubectl proxy
	defer server.Close()

	type Pod struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	src, err := informer.FromURL(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pods := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.JSON[Pod](), informer.Options{})
	if err := pods.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for event, err := range pods.Events(ctx) {
		if err != nil {
			log.Print(err)
			continue
		}
		if event.Type == informer.Synced {
			break // only in this example
		}
		pod, _ := event.Object()
		fmt.Println(event.Type, event.Key, pod.Spec.NodeName)
	}
	// Unordered output:
	// ADDED default/one n1
	// ADDED default/two n1
}

// Reconciles a custom resource: handles the events of each object in order and
// retries failures.
func ExampleReconcile() {
	server := apiServer(widgets, `{"size":3}`, true)
	defer server.Close()

	type Widget struct {
		Spec struct {
			Size int `json:"size"`
		} `json:"spec"`
	}
	src, err := informer.FromURL(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	widgets := informer.New(src, informer.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, informer.JSON[Widget](), informer.Options{})
	var mu sync.Mutex
	var done []string
	failed := false
	options := informer.ReconcileOptions[Widget]{EveryEvent: true, MinBackoff: time.Millisecond}
	informer.Reconcile(widgets, options, func(_ context.Context, event informer.Event[Widget]) error {
		widget, err := event.Object()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if event.Type == informer.Updated && !failed {
			failed = true
			return errors.New("write conflict")
		}
		done = append(done, fmt.Sprintln(event.Type, event.Key.Name, widget.Spec.Size))
		if len(done) == 4 {
			cancel()
		}
		return nil
	})
	if err := widgets.Run(ctx); err != nil {
		log.Fatal(err)
	}
	slices.Sort(done)
	for _, line := range done {
		fmt.Print(line)
	}
	// Output:
	// ADDED one 3
	// ADDED two 3
	// DELETED two 3
	// UPDATED one 7
}

// Finds Pods by the node on which they run.
func ExampleAddIndex() {
	server := apiServer(informertest.Pods, `{"nodeName":"n1"}`, true)
	defer server.Close()

	type Pod struct {
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	src, err := informer.FromURL(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pods := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.JSON[Pod](), informer.Options{})
	byNode := informer.AddIndex(pods, func(ref informer.Ref[Pod]) ([]string, error) {
		pod, err := ref.Object()
		return []string{pod.Spec.NodeName}, err
	})
	if err := pods.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitSynced(ctx); err != nil {
		log.Fatal(err)
	}
	if err := pods.WaitRV(ctx, "7"); err != nil { // from the response to a write
		log.Fatal(err)
	}
	for key := range byNode.Get("n2") {
		fmt.Println(key)
	}
	// Output:
	// default/one
}

// Calls functions for events, one at a time. A slow function does not delay other
// subscribers.
func ExampleInformer_Handle() {
	server := apiServer(informertest.Pods, `{"nodeName":"n1"}`, true)
	defer server.Close()

	src, err := informer.FromURL(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pods := informer.New(src, informer.Resource{Version: "v1", Name: "pods"}, informer.Raw(), informer.Options{Namespaces: []string{"default"}})
	type ref = informer.Ref[json.RawMessage]
	pods.Handle(informer.Handler[json.RawMessage]{
		Add:    func(now ref) { fmt.Println("new:", now.Key(), now.RV()) },
		Update: func(old, now ref) { fmt.Println("was", old.RV(), "is", now.RV()) },
		Delete: func(last ref) { fmt.Println("gone:", last.Key()); cancel() },
		Error:  func(err error) { log.Print(err) },
	})
	if err := pods.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// new: default/one 3
	// new: default/two 4
	// was 3 is 6
	// gone: default/two
}
