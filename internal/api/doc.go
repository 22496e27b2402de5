// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package api is what /watchkeeper/v1 answers, for who writes and who reads it,
// and its description, openapi.json, in OpenAPI 3. What is in the one is in the
// other: a test of the gateway validates its answers against the description.
//
// resourceVersions are strings, as everywhere in Kubernetes: they do not fit
// into the numbers of JavaScript.
package api
