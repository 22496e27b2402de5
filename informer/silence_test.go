// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"io"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// TestI12Silence: a watch whose bookmarks stop is replaced by one on a new
// connection, after two and a half of their intervals. The upstream has to prove
// its history first.
func TestI12Silence(t *testing.T) {
	cut := script.WithBookmarks(script.Event("MODIFIED", "a", 14))
	cut.Stall, cut.Then = false, io.ErrUnexpectedEOF
	for name, test := range map[string]struct {
		answers []script.Answer
		events  []string      // after the initial ones
		after   time.Duration // of the last event; less than any timeoutSeconds
		by      []int         // connection of each request
	}{
		"dead": {[]script.Answer{script.Probe, script.WithBookmarks(), script.Answered, {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 14)}},
			[]string{"UPDATED ns/a 3→14"}, 165 * time.Second, []int{0, 0, 1, 1, 1, 0}},
		"dead after a deletion": {[]script.Answer{script.Probe, script.WithBookmarks(script.Event("DELETED", "a", 14)), {Want: script.From(14), Stall: true}, {Want: script.From(10), Stall: true, Body: script.Event("DELETED", "a", 14) + script.Event("ADDED", "b", 15)}},
			[]string{"DELETED ns/a 14→", "ADDED ns/b →15"}, 195 * time.Second, []int{0, 0, 1, 1, 1, 0}},
		"connection refused at first": {[]script.Answer{script.Probe, script.WithBookmarks(), {Then: syscall.ECONNREFUSED}, script.Answered, {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 14)}},
			[]string{"UPDATED ns/a 3→14"}, 4 * minute, []int{0, 0, 1, 2, 2, 2, 0}},
		"history expired": {[]script.Answer{script.Probe, script.WithBookmarks(), {Want: script.From(13), Code: 410, Body: script.Status(410)}, script.At(20), {Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 15) + script.Bookmark(20, true)}},
			[]string{"UPDATED ns/a 3→15"}, 165 * time.Second, []int{0, 0, 1, 0, 0}},
		"dead after the proof": {[]script.Answer{script.Probe, cut, script.At(30), {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 14)},
			{Want: script.From(14), Stall: true}, {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 14) + script.Event("MODIFIED", "a", 16)}},
			[]string{"UPDATED ns/a 3→14", "error", "UPDATED ns/a 14→16"}, 196 * time.Second, []int{0, 0, 0, 0, 1, 1, 1, 0}},
		"alive": {[]script.Answer{script.Probe, script.WithBookmarks(script.Bookmark(14, false), script.Bookmark(15, false), script.Event("MODIFIED", "a", 16))},
			[]string{"UPDATED ns/a 3→16"}, 3 * minute, []int{0, 0}},
		"the replacement is dead too": {[]script.Answer{script.Probe, script.WithBookmarks(), script.Answered, {Want: script.From(10), Stall: true, Body: script.Bookmark(14, false)},
			{Want: script.From(2), Stall: true, Body: script.Event("ADDED", "a", 3)}, // a check, since the one before was silent
			{Want: script.From(2), Stall: true, Body: script.Event("ADDED", "a", 3)}, // a check, since it is silent
			{Want: script.From(14), Stall: true}, {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 16)}},
			[]string{"UPDATED ns/a 3→16"}, 315 * time.Second, []int{0, 0, 1, 1, 1, 0, 0, 2, 2, 2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := script.NewConnections(&script.Upstream{T: t, Answers: test.answers})
				i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, up), pods, Raw(), Options{})
				d := follow(t, i)
				stop := start(t, i)
				time.Sleep(test.after - time.Second)
				if got := d.read(); len(got) >= 2+len(test.events) {
					t.Errorf("too early: %q", got)
				}
				time.Sleep(2 * time.Second)
				want(t, d.read(), append([]string{"ADDED ns/a →3 initial", "SYNCED→"}, test.events...)...)
				if len(up.By) != len(test.by) {
					t.Errorf("requests by connection: %v, want %v", up.By, test.by)
				}
				for n, id := range up.By {
					if n < len(test.by) && test.by[n] != id {
						t.Errorf("requests by connection: %v, want %v", up.By, test.by)
					}
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestTransportOfAnyType: a transport may be of a type that cannot be compared.
func TestTransportOfAnyType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script.Upstream{T: t, Answers: []script.Answer{script.Probe, syncedFor(2 * minute)}}
		i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, transportFunc(up.RoundTrip)), pods, Raw(), Options{})
		d := follow(t, i)
		stop := start(t, i)
		time.Sleep(minute)
		want(t, d.read(), "ADDED ns/a →3 initial", "SYNCED→")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (f transportFunc) CloseIdleConnections() {}

// TestI12Unanswered: a watch whose response headers do not arrive is retried.
func TestI12Unanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script.Upstream{T: t, Answers: []script.Answer{script.Probe, syncedFor(minute), {Want: script.From(10), Silent: true}, script.At(10), {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 11)}}}
		i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, up), pods, Raw(), Options{})
		d := follow(t, i)
		start(t, i)
		time.Sleep(2 * minute)
		want(t, d.read(), "ADDED ns/a →3 initial", "SYNCED→", "error", "UPDATED ns/a 3→11")
	})
}

// TestContinuityOfSilence: an upstream that was restored while a dead connection
// appeared open is noticed when the watchdog replaces the watch.
func TestContinuityOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := script.NewConnections(&script.Upstream{T: t, Answers: []script.Answer{script.Probe, script.WithBookmarks(script.Event("MODIFIED", "a", 13)), script.Answered, script.At(30),
			{Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 12) + script.Event("MODIFIED", "a", 14)},
			script.At(30), {Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 14) + script.Bookmark(30, true)}}})
		i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, up), pods, Raw(), Options{})
		d := follow(t, i)
		start(t, i)
		time.Sleep(5 * minute)
		want(t, d.read(), "ADDED ns/a →3 initial", "SYNCED→", "UPDATED ns/a 3→13", "UPDATED ns/a 13→14")
		if n := i.Status().Relists["diverged"]; n != 1 {
			t.Errorf("relists: %v", i.Status().Relists)
		}
	})
}
