// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package robustness tests the watch guarantees under faults, after the model
// of etcd's tests/robustness.
//
//	writers ──► kube-apiserver ──► etcd ──► truth: every version, by revision
//	                  ▲
//	              faultproxy            cut, stall, 410, stale replica, …
//	                  ▲
//	               gateway              killed and restarted
//	                  ▲
//	               clients ──► histories: every request, every byte it brought
//
// A round runs all of that from one seed, then ends the
// faults, waits until every client has come to the end of the story, and
// judges the histories by the truth: one validator per guarantee
// (validate_test.go), each of which is shown to reject a bad history. Some
// clients are connected to the API server directly: what they record has to
// pass as well, which shows that the validators ask for what Kubernetes gives.
//
// The truth comes from etcd itself: it stays whole when the API server is
// killed. WATCHKEEPER_FAULTS_SECONDS is how much trouble there is (36),
// WATCHKEEPER_FAULTS_ROUND how much of it in each round (12), and
// WATCHKEEPER_FAULTS_SEED what the first round is drawn from (random). A round
// that failed is run again by its own seed; its histories are kept, and the
// folder is printed.
//
// TestSimulation runs the same without processes, in virtual time: the gateway
// in front of a simulated API server, some hundred rounds a minute, each as
// exactly again by its seed as goroutines allow.
//
// TestPast is about what was recorded: a gateway in front of the same writers is
// killed, has a compaction hidden from it and is told to forget, and lists,
// Tables, objects and watches at random moments of its history are judged by
// etcd's (pastjudge_test.go). WATCHKEEPER_PAST_SECONDS and WATCHKEEPER_PAST_SEED
// are its length and its seed.
//
// Bugs found are in docs/track-record.md.
package robustness
