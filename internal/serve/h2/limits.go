// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import "time"

const (
	// maxFrameSize is the default of SETTINGS_MAX_FRAME_SIZE, which both sides keep.
	maxFrameSize = 16 << 10
	// tableSize is the default of SETTINGS_HEADER_TABLE_SIZE. A client that offers a
	// larger table for responses does not get one.
	tableSize = 4 << 10

	// streamWindow and connWindow are how many bytes of request bodies may be on their way
	// or unread, of one request and of all.
	streamWindow = 256 << 10
	connWindow   = 1 << 20

	// maxContinuations is how many CONTINUATION frames a header block may have, besides
	// those that the largest header needs (CVE-2023-45288).
	maxContinuations = 16

	// maxReplies is how many answers to PING, SETTINGS and the like may wait for a client
	// that does not read (CVE-2019-9512, CVE-2019-9515). It is net/http's.
	maxReplies = 10000

	// A client may send some frames that make work and carry nothing (PING, SETTINGS,
	// PRIORITY, empty DATA): so many at once, and so many per second
	// (CVE-2019-9513, CVE-2019-9518).
	idleFrames, idleFramesPerSecond = 10000, 1000
	// streamsPerFrame is how many streams' windows SETTINGS may change as one such frame.
	streamsPerFrame = 100

	// bytesPerUpdate is for how many bytes of DATA a client may send a WINDOW_UPDATE, besides
	// idleFrames, when the stream has ended.
	bytesPerUpdate = 512

	// The same of requests that end before they are answered, because the client resets
	// them (CVE-2023-44487) or because they are malformed (CVE-2025-8671). All streams that
	// a connection may have can be reset at once.
	resets, resetsPerSecond = 1000, 100
	// maxOrphans is how many handlers may still run whose stream has been reset.
	maxOrphans = 1000
	// heldHeaders is how many bytes of headers the running handlers of a connection may
	// have, in headers of the largest size, besides heldPerStream for each stream that it
	// may have.
	heldHeaders, heldPerStream = 16, 2 << 10
	// maxUnsentHeaders is how many bytes of headers may wait for a client that does not
	// read, and still sends requests.
	maxUnsentHeaders = 4 << 20

	// maxClosed is how many closed streams are remembered, to tell frames that crossed
	// with a reset from frames that break the protocol.
	maxClosed = 256
)

// A budget bounds how often something happens: full at first, and refilled with time.
type budget struct {
	size, perSecond float64
	left            float64
	last            time.Time
}

func newBudget(size, perSecond float64) budget {
	return budget{size: size, perSecond: perSecond, left: size, last: time.Now()}
}

// spend reports false if the budget is exceeded.
func (b *budget) spend() bool {
	if b.left < 1 {
		now := time.Now()
		b.left = min(b.size, b.left+b.perSecond*now.Sub(b.last).Seconds())
		b.last = now
	}
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
