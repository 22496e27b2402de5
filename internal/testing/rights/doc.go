// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package rights tests that the gateway in shared mode allows exactly what the API server
// allows: with random users, Roles, bindings and requests, each sent to both with the same
// credentials.
//
//	          ┌─► kube-apiserver ──► answer ─┐
//	request ──┤                              ├─► judge
//	          └─► gateway ─────────► answer ─┘
//
// A round runs from one seed. It makes a world (world_test.go): objects in some
// namespaces, ServiceAccounts, users and groups, Roles, ClusterRoles, aggregated ones too,
// and bindings. It waits until the API server's authorizer knows all of them, sends the
// requests (requests_test.go) of identities (identities_test.go), and judges each pair of
// answers (judge_test.go). Writes are dry runs, and the round ends with a check that the
// objects are unchanged.
//
// The past, projections, the history, multiwatches and the access API have no answer of the
// API server. What the gateway has to answer to them is computed from SubjectAccessReviews
// (oracle_test.go), whose attributes come from the generator and not from parsing the path.
//
// The test itself is tested in two ways: the API server compared with itself has no
// mismatch, and each of several wrong gateways has (wrong_test.go).
//
// TestImpersonated has callers with certificates only, and a gateway with --impersonate.
//
// WATCHKEEPER_RIGHTS_CASES is the number of requests (2,000), WATCHKEEPER_RIGHTS_SEED the
// seed of the first round (random). A mismatch is printed with the seed of its round.
package rights
