// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"sync"

	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// A trust says how the record may be continued.
//
//	from     when                                              to
//	any      a list of the upstream is recorded                resumes
//	resumes  gone, or another definition or cluster            mustList
//	any      the upstream turns out to have another history    diverged
type trust int

const (
	// resumes: by a watch of the upstream, which has to prove that it has the recorded events.
	resumes trust = iota
	// mustList: the record must not be continued without a list.
	mustList
	// diverged: the upstream has another history than the record. The next list
	// begins an epoch, whatever it contains.
	diverged
)

// A continuity is the knowledge of how a resource's record and the upstream relate.
// It outlives sessions.
type continuity struct {
	mu    sync.Mutex // guards what follows
	trust trust
	// recorder is the resource's in the current session, nil if it is not recorded.
	recorder *resourceRecorder
	// followed is the followed timeline, and epoch its epoch that continues the
	// record: it began with the record, or has been compared with it. The epoch is
	// 0 if there is none.
	followed *timeline.Timeline
	epoch    uint64
}

// begin sets the recorder of a session that records the resource.
func (c *continuity) begin(r *resourceRecorder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorder = r
}

// end removes the recorder: the resource is no longer recorded.
func (c *continuity) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorder = nil
}

// current returns the resource's recorder and the open timeline that it follows.
// Either may be nil.
func (c *continuity) current() (*resourceRecorder, *timeline.Timeline) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.followed; t == nil || isClosed(t) {
		return c.recorder, nil
	}
	return c.recorder, c.followed
}

// isClosed reports whether a timeline is closed.
func isClosed(t *timeline.Timeline) bool {
	v := t.View()
	return v != nil && v.Closed()
}

// listed is called when a list of the upstream is recorded.
func (c *continuity) listed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trust = resumes
}

// requireList makes the next reflector begin with a list.
func (c *continuity) requireList() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trust != diverged {
		c.trust = mustList
	}
}

// diverge is called when the upstream has another history.
func (c *continuity) diverge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trust = diverged
}

func (c *continuity) is(t trust) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trust == t
}

// follow sets the followed timeline. epoch is its epoch that continues the record, 0
// if none is known.
func (c *continuity) follow(t *timeline.Timeline, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followed != t || epoch != 0 { // else keep the epoch of an earlier session
		c.followed, c.epoch = t, epoch
	}
}

// continues reports whether a timeline's epoch continues the record.
func (c *continuity) continues(t *timeline.Timeline, epoch uint64) (yes bool) {
	c.ifContinues(t, epoch, func() { yes = true })
	return yes
}

// ifContinues calls do if a timeline's epoch continues the record, before that can
// change.
func (c *continuity) ifContinues(t *timeline.Timeline, epoch uint64, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followed == t && c.epoch == epoch && c.trust != mustList {
		do()
	}
}

// compared is called when a view of a timeline, which is as good as a list of the
// upstream, has been recorded; wasDiverged is what divergedFrom returned before. It
// ignores a timeline that has ended meanwhile: the trust may have ended with it. If the
// history has diverged meanwhile, the view is of the one before.
func (c *continuity) compared(t *timeline.Timeline, v *timeline.View, wasDiverged bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followed != t || isClosed(t) {
		return
	}
	c.epoch = v.Epoch()
	if c.trust != diverged || wasDiverged {
		c.trust = resumes
	}
}

// divergedFrom reports whether a timeline's view is of another history than the record:
// the upstream has diverged, or the timeline continued the record and has begun another one.
func (c *continuity) divergedFrom(t *timeline.Timeline, v *timeline.View) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trust == diverged || c.followed == t && c.epoch != 0 && !v.SameHistory(c.epoch)
}
