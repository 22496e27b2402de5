// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package upstream sends the gateway's requests to the API server, except the
// reflectors' lists and watches: the transport with the gateway's or a caller's
// credentials ([Server]), discovery ([Discovery], [Server.Preferred]), the definitions
// of custom resources ([Definitions]), the cluster's identity ([Server.Cluster]) and
// access reviews ([Server.Review]).
//
// Concurrent callers share one upstream request ([Inflight], [FreshCall]). It belongs
// to no client's request, so a [Background] runs and ends it. Errors contain no
// credentials ([Cause]). All types are safe for concurrent use.
package upstream
