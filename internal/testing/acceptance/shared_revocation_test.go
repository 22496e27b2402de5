// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const (
	// everybody is the namespace in which all users may watch, until the end.
	everybody = "rev-everybody"
	// usersOfGroup is the number of users of a group.
	usersOfGroup = 10
	// maxRevocation bounds the time from the API server's denial to the end of a stream.
	// The goal is ten seconds; the rest is for a busy machine. The log has what it took.
	maxRevocation = 30 * time.Second
	// pollInterval is the time between two requests that ask the API server for its denial.
	pollInterval = 100 * time.Millisecond
)

// A group is the users of one namespace, who lose their rights or their credentials in the
// same way.
type group struct {
	revocation
	ns      string
	users   []*sharedUser
	streams [][]*stream // of each user
	denials             // of each user that is concerned
}

// denials are the times of the API server's own first denials.
type denials struct {
	at   []time.Time
	done sync.WaitGroup
}

// lost reports whether the revocation concerns a user.
func (g *group) lost(user int) bool { return user < g.loses }

// TestSharedRevocation has 100 users with 1,000 open watches, of whom some lose their
// rights or their credentials in each way there is. Exactly their watches have to end,
// cleanly and soon after the API server's own denial, and what they get when they watch
// again has to be the API server's answer. What that costs the API server depends on the
// users concerned, not on their streams.
//
// No other test runs meanwhile: the reviews are counted.
func TestSharedRevocation(t *testing.T) {
	clustertest.SkipShort(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	groups := setUpGroups(t)
	g := startShared(t) // when no right has changed for a while, for a gateway that starts
	t.Cleanup(func() { deleteGroups(groups) })
	stopChanges := changing(t, groups)
	defer stopChanges()
	openStreams(ctx, t, g, groups)
	t.Logf("%d streams of %d users are open after %v", countStreams(groups, nil), len(groups)*usersOfGroup, time.Since(began).Round(time.Millisecond))
	fromCache(t, g)
	for _, one := range groups {
		if one.revocation.users == ofIssuer { // which is not revoked, but ends
			one.pollDenials(t)
		}
	}

	// The API server's caches of tokens delay the end of credentials by up to ten seconds,
	// so they are revoked at the same time.
	var waves [][]*group
	var credentials []*group
	for _, one := range groups {
		switch {
		case one.loses == 0:
		case one.code == http.StatusUnauthorized:
			credentials = append(credentials, one)
		default:
			waves = append(waves, []*group{one})
		}
	}
	for _, wave := range append(waves, credentials) {
		revoke(t, groups, wave)
	}
	for _, one := range groups {
		compareRefusals(t, g, one)
	}
	stopChanges()
	othersAreAlive(t, groups)
	cancel()
	for _, one := range groups {
		for _, streams := range one.streams {
			for _, s := range streams {
				<-s.done
			}
		}
	}
	for _, one := range groups {
		checkSockets(t, one)
	}
}

// revoke revokes the rights of the groups of a wave, waits for the end of their streams,
// and logs how long it took.
func revoke(t *testing.T, all, wave []*group) {
	t.Helper()
	before, began := countReviews(t), time.Now()
	for _, one := range wave {
		if one.revoke != nil {
			one.revoke(t, one)
			one.pollDenials(t)
		}
	}
	for _, one := range wave {
		one.done.Wait()
	}
	deadline := time.Now().Add(maxRevocation)
	for _, one := range wave {
		var took []time.Duration
		for i, streams := range one.streams {
			if !one.lost(i) {
				continue
			}
			for _, s := range streams {
				if s.kind == elsewhere && one.code == http.StatusForbidden {
					continue
				}
				took = append(took, awaitEnd(t, one, s, deadline).Sub(one.at[i]))
			}
		}
		slices.Sort(took)
		t.Logf("%-40s %3d streams of %2d users: after the API server's denial p50 %5v, p99 %5v, max %5v", one.name, len(took), one.loses,
			took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	}
	elapsed := time.Since(began)
	after := countReviews(t)
	concerned := 0
	for _, one := range wave {
		concerned += one.streamsConcerned()
	}
	// A right is checked at once, and then at most every second for ten seconds, until it is
	// denied. A user has one right in the group's namespace, and one credential. Those of
	// others are checked about every minute, at the earliest after 45 seconds; those who
	// were spared before are checked like those concerned.
	checks := 2 + int(min(elapsed, 11*time.Second)/time.Second)
	bound := (len(wave)+1)*usersOfGroup*checks + int(elapsed*time.Duration(2*usersOfGroup*len(all))/(45*time.Second)) + 5
	t.Logf("  in %v the gateway made %d SubjectAccessReviews and %d TokenReviews for %d streams",
		elapsed.Round(time.Millisecond), after.access-before.access, after.tokens-before.tokens, concerned)
	if n := after.access - before.access; n > bound {
		t.Errorf("%d SubjectAccessReviews, want at most %d", n, bound)
	}
	if n := after.tokens - before.tokens; n > bound {
		t.Errorf("%d TokenReviews, want at most %d", n, bound)
	}
}

// pollDenials begins to ask the API server for its denials.
func (g *group) pollDenials(t *testing.T) {
	g.at = make([]time.Time, g.loses)
	for i := range g.loses {
		g.done.Go(func() { g.at[i] = awaitDenial(t, g.users[i], g) })
	}
}

// awaitDenial returns when the API server itself denies a user's list, with the same
// credentials: when the first request was sent that it denied.
func awaitDenial(t *testing.T, u *sharedUser, one *group) time.Time {
	_, base := direct(t)
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(pollInterval) {
		sent := time.Now()
		a, err := u.get(t.Context(), base+configMapsIn(one.ns)+"?limit=1&resourceVersion=0")
		if err == nil && a.code == one.code {
			return sent
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: the API server still answers %s with %d %v", one.name, u.name, a.code, err)
			return sent
		}
	}
}

// awaitEnd returns when a stream ended, which has to be cleanly.
func awaitEnd(t *testing.T, one *group, s *stream, deadline time.Time) time.Time {
	for {
		if at, over := s.isOver(); over {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.err != nil {
				t.Errorf("%s: %s of %s ended with %v", one.name, s.name, s.user.name, s.err)
			}
			if want := fmt.Sprintf(`"code":%d`, one.code); s.kind == multi && !strings.Contains(s.refusal, want) {
				t.Errorf("%s: %s of %s ended with %q, want %s", one.name, s.name, s.user.name, s.refusal, want)
			}
			return at
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: %s of %s has not ended after %v", one.name, s.name, s.user.name, maxRevocation)
			return deadline
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// compareRefusals compares what users get who watch again.
func compareRefusals(t *testing.T, g *clustertest.SharedGateway, one *group) {
	t.Helper()
	_, base := direct(t)
	inParallel(one.loses, func(i int) {
		u := one.users[i]
		for _, query := range []string{"?watch=1&resourceVersion=0", "?watch=1", "?resourceVersion=0", ""} {
			path := configMapsIn(one.ns) + query
			want, err := u.get(t.Context(), base+path)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := u.get(t.Context(), g.URL+path)
			if err != nil {
				t.Error(err)
				return
			}
			if want.code != one.code || got != want {
				t.Errorf("%s: %s for %s\n the API server %+v\n the gateway    %+v", one.name, path, u.name, want, got)
			}
		}
		got, err := u.get(t.Context(), g.URL+configMapsIn(one.ns)+"?watch=1&resourceVersion=0&fields=data.n")
		if err != nil || got.code != one.code {
			t.Errorf("%s: fields for %s: %+v %v", one.name, u.name, got, err)
		}
	})
}

// othersAreAlive checks that the streams of others go on: each gets one more event.
func othersAreAlive(t *testing.T, groups []*group) {
	t.Helper()
	for _, ns := range namespacesOf(groups) {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: lastObject, Labels: map[string]string{"n": "0"}}}
		if _, err := api.CoreV1().ConfigMaps(ns).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	alive := 0
	for _, one := range groups {
		for i, streams := range one.streams {
			for _, s := range streams {
				want := 1
				switch {
				case s.kind == socket: // see checkSockets
					continue
				case !one.lost(i) && s.kind == multi:
					want = 2
				case !one.lost(i), one.code == http.StatusForbidden && s.kind != plain:
				default:
					continue
				}
				alive++
				eventually(t, fmt.Sprintf("the last event: %s of %s (%s)", s.name, s.user.name, one.name), func() bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					if !s.ended.IsZero() {
						t.Fatalf("%s: %s of %s ended: %v", one.name, s.name, s.user.name, s.err)
					}
					return s.marked >= want
				})
			}
		}
	}
	t.Logf("%d streams of others, and watches elsewhere of those concerned, go on", alive)
}

// checkSockets checks the WebSockets of users whom no revocation concerned: they had the
// last event.
func checkSockets(t *testing.T, one *group) {
	t.Helper()
	for i, streams := range one.streams {
		for _, s := range streams {
			if s.kind == socket && !one.lost(i) && s.marked != 1 {
				t.Errorf("%s: the WebSocket of %s has %d of the last events: %v", one.name, s.user.name, s.marked, s.err)
			}
		}
	}
}

// reviews are numbers of requests that the API servers have answered.
type reviews struct{ access, tokens int }

var reviewMetric = regexp.MustCompile(`(?m)^apiserver_request_total\{.*resource="(subjectaccessreviews|tokenreviews)".*\} (\d+)$`)

func countReviews(t *testing.T) (n reviews) {
	t.Helper()
	client, _ := direct(t)
	for _, url := range apiServers(t) {
		_, text := get(t, client, url+"/metrics")
		for _, m := range reviewMetric.FindAllStringSubmatch(text, -1) {
			count, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			if m[1] == "tokenreviews" {
				n.tokens += count
			} else {
				n.access += count
			}
		}
	}
	return n
}
