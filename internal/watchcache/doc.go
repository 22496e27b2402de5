// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package watchcache watches resources at the API server and keeps their timelines.
//
// A resource is watched from its first use on, by one reflector into one timeline,
// until it was idle for a while ([Options].IdleTimeout). While the upstream is
// down, what the timeline has can be read, and goes on when the upstream is back.
// Where the resource is recorded, the timeline begins with what is on disk and the
// reflector resumes there, by a lease of the recorder.
//
//	              Acquire                first list, or the record is resumed
//	(not watched) ───────► starting ───────────────────────────────► synced
//	      ▲                    │ refused, gone                          │
//	      └────────────────────┴──────── idle, dropped, refused ◄───────┘
//
// That the timeline has everything the API server acknowledged is proven on demand
// ([Resource.Fresh], design "Reads").
//
// Everything here may be called concurrently.
package watchcache
