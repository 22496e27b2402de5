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
)

// A freshScript is a script with a Fresh method. It records the connection of each
// request; the first connection is 0.
type freshScript struct {
	*script
	connections *int
	id          int
	by          *[]int
}

func newFreshScript(s *script) *freshScript {
	return &freshScript{script: s, connections: new(int), by: &[]int{}}
}

func (f *freshScript) Fresh() (http.RoundTripper, error) {
	*f.connections++
	other := *f
	other.id = *f.connections
	return &other, nil
}

func (f *freshScript) RoundTrip(r *http.Request) (*http.Response, error) {
	*f.by = append(*f.by, f.id)
	return f.script.RoundTrip(r)
}

// withBookmarks answers with a streaming list and then, half a minute apart, three
// bookmarks and the frames given.
func withBookmarks(then ...string) answer {
	return answer{want: streaming, stall: true, body: event("ADDED", "a", 3) + bookmark(10, true),
		late: append([]string{bookmark(11, false), bookmark(12, false), bookmark(13, false)}, then...)}
}

// answered is the answer to the watch with which the watchdog tries a new connection.
var answered = answer{want: from(13), stall: true}

// TestI12Silence: a watch whose bookmarks stop is replaced by one on a new
// connection, after two and a half of their intervals. The upstream has to prove
// its history first.
func TestI12Silence(t *testing.T) {
	cut := withBookmarks(event("MODIFIED", "a", 14))
	cut.stall, cut.then = false, io.ErrUnexpectedEOF
	for name, test := range map[string]struct {
		answers []answer
		events  []string      // after the initial ones
		after   time.Duration // of the last event; less than any timeoutSeconds
		by      []int         // connection of each request
	}{
		"dead": {[]answer{probe, withBookmarks(), answered, {want: from(10), stall: true, body: event("MODIFIED", "a", 14)}},
			[]string{"UPDATED ns/a 3→14"}, 165 * time.Second, []int{0, 0, 1, 1, 1}},
		"dead after a deletion": {[]answer{probe, withBookmarks(event("DELETED", "a", 14)), answered, {want: from(10), stall: true, body: event("DELETED", "a", 14) + event("ADDED", "b", 15)}},
			[]string{"DELETED ns/a 14→", "ADDED ns/b →15"}, 195 * time.Second, []int{0, 0, 1, 1, 1}},
		"connection refused at first": {[]answer{probe, withBookmarks(), {then: syscall.ECONNREFUSED}, answered, {want: from(10), stall: true, body: event("MODIFIED", "a", 14)}},
			[]string{"UPDATED ns/a 3→14"}, 4 * minute, []int{0, 0, 1, 2, 2, 2}},
		"history expired": {[]answer{probe, withBookmarks(), {want: from(13), code: 410, body: status(410)}, at(20), {want: streaming, stall: true, body: event("ADDED", "a", 15) + bookmark(20, true)}},
			[]string{"UPDATED ns/a 3→15"}, 165 * time.Second, []int{0, 0, 1, 0, 0}},
		"dead after the proof": {[]answer{probe, cut, at(30), {want: from(10), stall: true, body: event("MODIFIED", "a", 14)},
			{want: from(14), stall: true}, {want: from(10), stall: true, body: event("MODIFIED", "a", 14) + event("MODIFIED", "a", 16)}},
			[]string{"UPDATED ns/a 3→14", "error", "UPDATED ns/a 14→16"}, 196 * time.Second, []int{0, 0, 0, 0, 1, 1, 1}},
		"alive": {[]answer{probe, withBookmarks(bookmark(14, false), bookmark(15, false), event("MODIFIED", "a", 16))},
			[]string{"UPDATED ns/a 3→16"}, 3 * minute, []int{0, 0}},
		"the replacement is dead too": {[]answer{probe, withBookmarks(), answered, {want: from(10), stall: true, body: bookmark(14, false)}, {want: from(14), stall: true}, {want: from(10), stall: true, body: event("MODIFIED", "a", 16)}},
			[]string{"UPDATED ns/a 3→16"}, 4 * minute, []int{0, 0, 1, 1, 1, 2, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := newFreshScript(&script{t: t, answers: test.answers})
				i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, up), pods, Raw(), Options{})
				d := follow(t, i)
				stop := start(t, i)
				time.Sleep(test.after - time.Second)
				if got := d.read(); len(got) >= 2+len(test.events) {
					t.Errorf("too early: %q", got)
				}
				time.Sleep(2 * time.Second)
				want(t, d.read(), append([]string{"ADDED ns/a →3 initial", "SYNCED→"}, test.events...)...)
				if len(*up.by) != len(test.by) {
					t.Errorf("requests by connection: %v, want %v", *up.by, test.by)
				}
				for n, id := range *up.by {
					if n < len(test.by) && test.by[n] != id {
						t.Errorf("requests by connection: %v, want %v", *up.by, test.by)
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
		up := &script{t: t, answers: []answer{probe, syncedFor(2 * minute)}}
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
		up := &script{t: t, answers: []answer{probe, syncedFor(minute), {want: from(10), silent: true}, at(10), {want: from(10), stall: true, body: event("MODIFIED", "a", 11)}}}
		i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, up), pods, Raw(), Options{})
		d := follow(t, i)
		start(t, i)
		time.Sleep(2 * minute)
		want(t, d.read(), "ADDED ns/a →3 initial", "SYNCED→", "error", "UPDATED ns/a 3→11")
	})
}
