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
// A round runs all of that for up to a minute from one seed, then ends the
// faults, waits until every client has come to the end of the story, and
// judges the histories by the truth: one validator per guarantee
// (validate_test.go), each of which is shown to reject a bad history. Some
// clients are connected to the API server directly: what they record has to
// pass as well, which shows that the validators ask for what Kubernetes gives.
//
// The truth comes from etcd itself: it stays whole when the API server is
// killed. WATCHKEEPER_FAULTS_SECONDS is for how long the test runs (60),
// WATCHKEEPER_FAULTS_SEED what the first round is drawn from (random); a round
// that failed is run again by its own seed. The histories of a round that
// failed are kept, and the folder is printed.
//
// Bugs found are in docs/track-record.md.
package robustness
