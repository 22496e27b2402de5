// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube

// TimeoutHeader is a header of the answer to a watch that the server ends before the
// timeoutSeconds of the request: after so many seconds. Watchkeeper sends it.
const TimeoutHeader = "Watchkeeper-Timeout-Seconds"

// EventType is the type of a watch event.
type EventType string

// The event types of the Kubernetes watch API.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
	Error    EventType = "ERROR"
)
