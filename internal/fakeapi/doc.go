// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is the simulated API server of tests and benchmarks: an
// http.Handler that serves the Kubernetes API of a few resources from memory.
//
//	api := fakeapi.New(fakeapi.Options{})
//	network := fakeapi.NewNetwork(api)
//	defer network.Close()
//	rv := api.Put("pods", `{"metadata":{"namespace":"ns","name":"a"}}`)
//	resp, err := network.Client().Get("http://api/api/v1/pods")
//
// What it honours of kube-apiserver is at the head of one file per kind of
// request: list.go, watch.go, get.go, write.go, discovery.go and review.go.
// Package behaviour tests it; TestFakeAPI of package acceptance runs the same
// tests against a real API server.
// Requests for anything else are answered with 404; there is no authentication,
// no admission, no defaulting and no validation of objects.
//
// # Objects
//
// A test writes with Put and Delete, or over HTTP. An object is JSON; it is
// encoded in other formats when a client first asks for them. One counter gives
// all resourceVersions. All changes are kept, so that a list at any
// resourceVersion and a watch from any is possible, until Compact or Expire.
// Options.Population is for benchmarks with many Pods.
//
// # Faults
//
// A Control is a hook around the answers to requests: it refuses, delays, cuts
// or changes those that a test chooses, or writes other bytes. EndWatches,
// CutWatches, Expire and Compact act on the watches and the history as a whole.
// Faults that only a real API server has are those of package faultproxy.
//
// # Time
//
// The server has no clock but package time's, and waits on channels only. In a
// bubble of testing/synctest, with the connections of a Network, bookmarks and
// timeouts take no time. Each request has a goroutine, that of its connection;
// the server starts none.
package fakeapi
