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
// Each kind of request has a file that begins with the supported behaviour of
// kube-apiserver: list.go, watch.go, get.go, write.go, discovery.go and review.go.
// Package behaviour tests it; TestFakeAPI of package acceptance runs the same tests
// against a real API server. Other requests are answered with 404; there is no
// authentication, no admission, no defaulting and no validation of objects.
//
// # Objects
//
// A test writes with Put and Delete, or over HTTP. An object is JSON; it is encoded in
// other formats when a client first requests them. One counter gives all
// resourceVersions. All changes are kept until Compact or Expire, so that a list at any
// resourceVersion and a watch from any are possible. Options.Population is for
// benchmarks with many Pods.
//
// # Faults
//
// A Control is a hook around responses: it refuses, delays, cuts or changes those that
// a test chooses, or writes other bytes. EndWatches, CutWatches, Expire and Compact act
// on all watches and the whole history. Backup and Restore go back to an earlier state,
// as etcd's do. Package faultproxy injects faults in front of a real API server.
//
// # Time
//
// The server uses the clock of package time, and waits only on channels. In a bubble of
// testing/synctest, with the connections of a Network, bookmarks and timeouts take no
// real time. Each request runs in the goroutine of its connection; the server starts
// none.
package fakeapi
