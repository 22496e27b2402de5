// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package audit records requests as audit.k8s.io/v1 events, as kube-apiserver does:
// events, policy and log are those of k8s.io/apiserver, with its flags and defaults.
//
// A request without authentication gets its ID first, then an event, and the event ends
// with the response:
//
//	r = auditor.Identify(w, r)
//	... authentication; if it fails: e := auditor.Unauthenticated(r, attrs)
//	e, err := auditor.Begin(r, attrs, stream) // an error refuses the request with 500
//	w = e.ResponseWriter(w, r)
//	defer e.End()                             // or Complete, when a stream has ended
//
// The nil Auditor and the nil Event do nothing: auditing is off, or the policy wants no
// event of the request. An Event may be used by several goroutines.
//
// # What an event has
//
// Level Metadata in full. The gateway streams bodies without reading them (T7), so
// events have no request or response object: rules with the levels Request and
// RequestResponse count as Metadata, which the log says at start. The Status of a
// failure is recorded, for it is in the answer to the client.
//
// The annotations [AnnotationSource] and [AnnotationResourceVersion] say which part of
// the gateway answered, and at which RV. The decision and its reason have kube-apiserver's
// annotations. What was forwarded is in the API server's log under the same audit ID, with
// bodies if its policy says so.
//
// # Secrets
//
// No event has a header that authenticates, a body, or the value of a query parameter
// named like a token. The message of a failed request is left out where it could
// quote a Secret or a token.
//
// # Differences from kube-apiserver
//
// An anonymous caller writes the log, too: 1 MB of URL in three events of a request would
// push out the rotated files. Therefore long values are cut, and an Audit-ID that
// is long or not of ASCII is replaced. Impersonation is recorded as asked, since
// only the API server decides whether it is allowed. An exchange that is aborted because
// the client or the API server went away completes; kube-apiserver logs it as a panic.
//
// # Failure
//
// An event that cannot be written is counted, and the log of the gateway says so at most
// once a minute. In mode blocking-strict the request is refused if it is the event RequestReceived.
// Mode batch loses at most its buffer when the process is killed; the other modes have
// written an event before the response goes on.
package audit
