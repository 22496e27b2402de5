// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is the simulated API server of tests and benchmarks: that of package
// informertest, with all formats of kube-apiserver (protobuf, Tables, metadata), with
// access reviews, and with many objects for benchmarks (Options.Population).
//
//	api := fakeapi.New(fakeapi.Options{})
//	network := fakeapi.NewNetwork(api)
//	defer network.Close()
//	rv := api.Put("pods", `{"metadata":{"namespace":"ns","name":"a"}}`)
//	resp, err := network.Client().Get("http://api/api/v1/pods")
//
// Package behaviour tests that it behaves as documented; TestFakeAPI of package
// acceptance runs the same tests against a real API server. Package faultproxy injects
// faults in front of a real API server.
package fakeapi
