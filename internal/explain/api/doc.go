// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package api has the types of the answers of /watchkeeper/v1, for servers and
// clients, and their OpenAPI 3 description, openapi.json. A test of the gateway
// validates its answers against the description, so that the two agree.
//
// resourceVersions are strings, as everywhere in Kubernetes: they do not fit
// into the numbers of JavaScript.
package api

// HeartbeatHeader is the header of the answer of /watchkeeper/v1/multiwatch with upstream=1 that
// says after how many seconds a line comes at least.
const HeartbeatHeader = "Watchkeeper-Heartbeat"
