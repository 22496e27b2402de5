// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"fmt"
	"io"
	"net/http"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

func Example() {
	api := fakeapi.New(fakeapi.Options{})
	network := fakeapi.NewNetwork(api)
	defer network.Close()
	rv := api.Put("pods", `{"metadata":{"namespace":"ns","name":"a","uid":"u"},"spec":{"nodeName":"n"}}`)
	api.Delete("pods", "ns/a")

	// The first watch is refused.
	var remove func()
	remove = api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
		if r.Verb != "watch" {
			next(w)
			return
		}
		remove()
		http.Error(w, "not now", http.StatusServiceUnavailable)
	})
	for range 2 {
		resp, err := network.Client().Get(fmt.Sprintf("http://api/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion=%d", rv))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%s: %s", resp.Status, body)
	}
	// Output:
	// 503 Service Unavailable: not now
	// 200 OK: {"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"102"},"spec":{"nodeName":"n"}}}
}
