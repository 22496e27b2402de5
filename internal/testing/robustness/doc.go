// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package robustness tests the watch guarantees under faults, after the model
// of etcd's tests/robustness.
//
//	writers ──► kube-apiserver ──► etcd ──► truth: every version, by revision
//	                  ▲
//	              faultproxy            cut, stall, 410, stale replica, …
//	                  ▲
//	               gateway              killed and restarted, frozen
//	                  ▲
//	               clients ──► histories: every request and its response
//
// A round runs all of that from one seed. It then ends the faults, waits until
// every client has received everything, and judges the histories by the truth:
// one validator per guarantee (validate_test.go). A test shows that each
// validator rejects a bad history. Among the clients are Go informers (informers_test.go)
// and, run by Node, those for browsers (browser_test.go): each of their lists is judged as a
// list, and the events after it as a watch. Some clients are connected to the API server
// directly. Their histories have to pass as well, which shows that the
// validators demand no more than Kubernetes guarantees.
//
// The truth comes from etcd itself, so that it is complete even if the API server
// is killed. In some rounds etcd is restored from a snapshot (kills_test.go,
// restore_test.go). One of several API servers (WATCHKEEPER_APISERVERS=3) may lag:
// lists at RV 0 and watches may then be older, consistent reads may not.
//
// WATCHKEEPER_FAULTS_SECONDS is the total time with faults (36),
// WATCHKEEPER_FAULTS_ROUND the part of it in each round (12), and
// WATCHKEEPER_FAULTS_SEED the seed of the first round (random).
// WATCHKEEPER_FAULTS_PROFILE selects a kind of round by name. A failed round can be
// repeated with its own seed; the test keeps its histories and prints the folder.
//
// TestSimulation runs the same without processes, in virtual time: the gateway
// in front of a simulated API server, some hundred rounds a minute. A seed
// repeats a round as exactly as goroutine scheduling allows. In some rounds etcd is
// restored from a backup (restore_test.go), in half of them the gateway records a history,
// from which it serves watches of older RVs, and in all of them there are Go informers.
// WATCHKEEPER_SIMULATION_PROFILE selects a kind of round by name.
//
// TestPast is about the recorded history. A gateway in front of the same writers
// is killed, misses a compaction and is restarted with a shorter retention.
// Lists, Tables, objects and watches at random moments of its history are judged
// by etcd's history (pastjudge_test.go). WATCHKEEPER_PAST_SECONDS and
// WATCHKEEPER_PAST_SEED are its length and its seed.
//
// TestClock is a simulation of a gateway whose clock is set forward and back by a second to
// a year, also while it does not run (clock_test.go). Lists of the past by RV, time and age
// (clockread_test.go) are judged by the truth and by what the clock showed when
// (clockjudge_test.go, clockeras_test.go). WATCHKEEPER_CLOCKS is the number of rounds (30),
// WATCHKEEPER_CLOCKS_SEED the seed of the first one.
//
// TestReplicas has a gateway in front of two API servers behind a balancer, while one
// lags and when etcd is restored from a snapshot.
//
// With WATCHKEEPER_SHARED=1, the gateways of all tests that have processes are in shared mode,
// and their clients have the token of a ServiceAccount (shared_test.go).
package robustness
