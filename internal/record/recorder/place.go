// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// errMoved: the directory of the history was moved or removed.
var errMoved = errors.New("the directory of the history was moved or removed")

// placeOf returns what is at a directory, nil if it is not of the operating system.
func (r *Recorder) placeOf(dir string) os.FileInfo {
	if r.opts.FS != vfs.Default {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	return info
}

// checkPlace fails if the directory of the open history is not where it was opened. The
// files that are open can still be written then, and what is written is lost.
func (r *Recorder) checkPlace() error {
	r.mu.Lock()
	dir, place := r.dir, r.place
	r.mu.Unlock()
	if place == nil {
		return nil
	}
	now, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s", errMoved, dir)
	case err == nil && !os.SameFile(now, place):
		return fmt.Errorf("%w: another one is at %s", errMoved, dir)
	}
	return nil // another error may pass
}

// Missing implements past.Record.
func (r *Recorder) Missing(id kube.Resource) string {
	r.mu.Lock()
	selection, s, problem := r.selection, r.session, r.problem
	r.mu.Unlock()
	switch {
	case !selection.Matches(id):
		return ""
	case problem != nil && !errors.Is(problem, errStarting):
		return problem.Error()
	}
	if s != nil {
		s.mu.Lock()
		t, why := s.recorders[id], cmp.Or(s.undiscovered, s.unknown[id.Group])
		s.mu.Unlock()
		switch {
		case t != nil && t.refused.Load() != nil:
			return "the API server refuses to list and watch them: " + t.refused.Load().Message
		case t != nil:
			return "they have not been listed yet"
		case why != nil:
			return fmt.Sprintf("discovery of %s fails, and is tried again within %s: %v", id.APIVersion(), r.rediscover, why)
		}
	}
	return fmt.Sprintf("they are recorded from the next discovery on, within %s", r.rediscover)
}
