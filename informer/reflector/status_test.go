// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"io"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// TestStatusAllocations: a reflector's Status allocates nothing.
func TestStatusAllocations(t *testing.T) {
	r := New(Objects(false), &recordingSink{}, Options{})
	r.countRelist("initial")
	before := r.Status()
	r.countRelist("initial")
	if n := testing.AllocsPerRun(100, func() { r.Status() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if before.Relists["initial"] != 1 || r.Status().Relists["initial"] != 2 {
		t.Errorf("%v, %v", before, r.Status())
	}
}

// TestLastKnown: refusals, and lists of one item, are contact, but say nothing of what the sink
// has.
func TestLastKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synced := script.Synced
		synced.Stall, synced.Late, synced.Every, synced.Then = false, []string{script.Event("MODIFIED", "a", 12)}, 20*time.Second, io.ErrUnexpectedEOF
		up := &script.Upstream{T: t, Answers: []script.Answer{script.Probe, synced, script.At(20), {Code: 429, Body: script.Status(429), Again: true}}}
		u, _ := url.Parse("http://api/pods")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		r, began := New(Objects(false), &recordingSink{}, Options{Transport: up, URL: u}), time.Now()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		s := r.Status()
		if known, failing, contact := s.LastKnown.Sub(began), s.FailingSince.Sub(began), s.LastContact.Sub(began); known < 20*time.Second || known > 21*time.Second ||
			failing < known || failing > 25*time.Second || contact < 90*time.Second || codeOf(s.LastError) != 429 {
			t.Errorf("known at %v, failing since %v, contact at %v: %v", known, failing, contact, s.LastError)
		}
	})
}
