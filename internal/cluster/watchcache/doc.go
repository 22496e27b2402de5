// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package watchcache owns the upstream watches. It keeps the timelines of the resources
// that clients read, and feeds the records of those that are recorded.
//
// A resource has one upstream watch, for as long as it is needed: by clients that
// read it ([Cache.Acquire]), until it was idle for a while ([Options].IdleTimeout),
// or by its record ([Cache.Record]). The watch has one reflector, whose sink changes
// between two of its calls:
//
//	recording, seeding  upstream ──► reflector ──► record
//	caching             upstream ──► reflector ──► timeline ──cursor──► record
//
//	              recorded                     a client reads it
//	(not watched) ────────► recording ──────────────────────────────► seeding
//	  ▲     │                  ▲  ▲   timeline cannot start from the    │
//	  │     │                  │  │   record: starts over with a list   │
//	  │     │                  │  └───────────────────────┐             │
//	  │     │ a client         │ idle, and the record     │             │ timeline has the
//	  │     │ reads it         │ has everything           │             │ record's head
//	  │     └──────────────► caching ◄────────────────────┴─────────────┘
//	  │                        │
//	  └────────────────────────┘ idle and not recorded; dropped; refused
//
// While a timeline is loaded from the record (seeding), the reflector continues to feed
// the record, and the events are kept in memory to be applied to the timeline. While
// clients read the resource (caching), the record follows the timeline, so that the
// disk blocks neither the upstream watch nor a client. If the record cannot be read in
// time, or must not be continued, the reflector starts over with a list, and the record
// is compared with the timeline. If a record does not reach the end of a timeline in
// time, the next reflector resumes from the record's head. A reader does not wait
// for a disk that does not answer within [Options].DiskTimeout: then the resource is
// listed, and two reflectors can exist for a moment, of which the stopped one is in the
// record's sink.
//
// While the upstream is down, the timeline remains readable, and the watch resumes when
// the upstream is back. A proof that the timeline has everything the API server
// acknowledged is made on demand ([Resource.Fresh], docs/adr/0003), and for watches that
// begin above its head ([Resource.Reach]).
//
// All methods may be called concurrently.
package watchcache
