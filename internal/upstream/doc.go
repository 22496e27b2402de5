// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package upstream is everything that is asked of the API server, the reflectors'
// lists and watches aside: the transport with the gateway's or a caller's
// credentials ([Server]), discovery ([Discovery], [Server.Preferred]), the definitions
// of custom resources ([Definitions]), the cluster's identity ([Server.Cluster]) and
// access reviews ([Server.Review]).
//
// Questions that many requests have at the same time are asked once
// ([Inflight], [FreshCall]); they belong to no request, so a [Background] runs and
// ends them. Errors contain no credentials ([Cause]). All types are safe for
// concurrent use.
package upstream
