// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package fairness bounds what one user of the gateway may take from the others, in shared
// mode: [Users] has the bounds of each user, and a [Queue] gives slots to many keys in
// turn.
//
// A user is a user name: all clients of a ServiceAccount share its bounds, and no group is
// exempt. Requests without a user, which are those of local mode, have no bounds. Nothing is
// kept of a user who has nothing open.
//
// What a user takes, and what bounds it:
//
//   - CPU for lists and exports: the objects of a list are selected, encoded and compressed in
//     a [Turn]. There are few turns, which users get one after the other, however many lists
//     each of them asks for. No turn is held while a client is written to. A user who has used
//     a processor for a second, for these or for calls of the history API, gets a tenth of all
//     of them while others are at work.
//   - lists in flight, from their begin until the client has read them; further ones wait for
//     a while. A question in which namespaces the user may read counts as one: it is about
//     each of them. The initial events of a watch count as a list; they are encoded without a
//     turn, as the client reads them.
//   - lists at the API server, a fourth as many, and other reads that end by themselves there,
//     four times as many: a client that reads slowly holds up to ten seats of its priority
//     and fairness for a list, and one for another read, and other users wait for seats.
//   - streams: watches, each one of a multiwatch too, and other requests that last until
//     their client ends them.
//   - distinct selectors of watches, each of which costs time for each event.
//   - bytes of answers that clients have not read yet.
//   - reads of the past: whole lists, exports, and calls of the history API.
//
// Beyond a bound a request gets 429 with Retry-After, and a message that names the flag. Of a user,
// fifty requests a second do at most: further ones wait.
// Writes are bounded by the API server's priority and fairness alone: the gateway passes them
// through with the user's own credentials.
package fairness
