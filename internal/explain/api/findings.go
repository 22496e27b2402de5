// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Findings lists what fails at a moment, the most important first:
// GET /watchkeeper/v1/findings.
type Findings struct {
	At time.Time `json:"at"`
	// Namespace is the one that was asked for; "" for all.
	Namespace string    `json:"namespace,omitempty"`
	Items     []Finding `json:"items"`
	// Objects is how many objects were read.
	Objects int `json:"objects"`
	// Denied are recorded resources that the caller may not list, NotRecorded those that
	// findings, or the changes before them, are also read from and that are not recorded.
	Denied      []string `json:"denied,omitempty"`
	NotRecorded []string `json:"notRecorded,omitempty"`
	// LeftOut says what limits have left out.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Severities of a [Finding].
const (
	SeverityCritical = "critical" // something does not work
	SeverityWarning  = "warning"  // something works less than it should, or waits
	SeverityInfo     = "info"
)

// A Finding is something that fails, of one subject: a workload with its Pods that fail
// alike, or another object.
type Finding struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	// Kind, Namespace and Name are those of the subject. Resource and Path are left out if
	// the resource is not recorded.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Resource  string `json:"resource,omitempty"`
	Path      string `json:"path,omitempty"`
	// Title is one line without the subject, with the words of kubectl and the page.
	Title string `json:"title"`
	// Messages are what objects say about it, in their own words.
	Messages []string `json:"messages,omitempty"`
	// Since is when it began, for the first object. If SinceKnown is false, it began before, or
	// that is not known. NotBefore is the begin of the gap that ends at Since, if there is one.
	Since      time.Time `json:"since,omitzero"`
	NotBefore  time.Time `json:"notBefore,omitzero"`
	SinceKnown bool      `json:"sinceKnown,omitempty"`
	// Others is how many of the objects fail only since OthersSince, or later, which is more than
	// a minute after Since.
	Others      int       `json:"others,omitempty"`
	OthersSince time.Time `json:"othersSince,omitzero"`
	// Touches is how many objects fail, Objects are the first of them.
	Touches int             `json:"touches"`
	Objects []FindingObject `json:"objects"`
	// Before are the last changes before Since of the subject and of what its Pods use, the
	// newest first. They are not said to be the cause.
	Before []ObjectChange `json:"before,omitempty"`
	// BeforeLeftOut counts the changes of that time that are not in Before.
	BeforeLeftOut int `json:"beforeLeftOut,omitempty"`
	// Unobserved are the times in which Before may lack changes.
	Unobserved []TimeSpan `json:"unobserved,omitempty"`
	// RecordedSince is when the record begins, if Before is empty and it begins in that time, or
	// after Since.
	RecordedSince time.Time `json:"recordedSince,omitzero"`
}

// A FindingObject is an object that fails.
type FindingObject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Path      string `json:"path,omitempty"`
}
