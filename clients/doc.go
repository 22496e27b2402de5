// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients tests Watchkeeper with common clients, for which it has to be
// transparent: client-go's informers, a controller-runtime manager and, in node/,
// the informer of @kubernetes/client-node. Each runs twice, against the API server
// and against a gateway in front of it, while objects change and the API server is
// killed and restarted; both must end in the same state.
//
// TestH2Spec judges the gateway's HTTP/2 by h2spec, and TestHTTP2Clients uses clients of
// other projects: curl, nghttp, h2load, Node and kubectl.
//
// TestAlerts is about another client, Prometheus: it checks the example alert rules.
//
// It is a separate module, so that Watchkeeper does not depend on these clients. Apart
// from widget/, a controller for a comparison, it contains only tests. They need bin/localcluster (make build), and Node's packages
// (npm ci in node/).
package clients
