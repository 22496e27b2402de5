// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package api

// Access is the answer of /watchkeeper/v1/access: in which namespaces the caller may
// read a resource now.
type Access struct {
	Resource string `json:"resource"` // pods, deployments.apps
	Verb     string `json:"verb"`     // get, list or watch
	// All is set if the caller may read the resource in all namespaces, or, if the
	// resource has no namespaces, at all. Namespaces is empty then.
	All        bool     `json:"all"`
	Namespaces []string `json:"namespaces"`
	// Incomplete is set if there are more namespaces than were asked about.
	Incomplete bool `json:"incomplete"`
}
