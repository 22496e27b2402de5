// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
)

// TestDecisionsAreCached: an answer is used for ten seconds, concurrent equal questions are
// asked once, and failures are not cached.
func TestDecisionsAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		z := newTestAuthorizer(t, r)
		a := callerNamed("a")
		var asking sync.WaitGroup
		for range 50 {
			asking.Go(func() { z.Decide(t.Context(), a, watchPods(a, "x")) })
		}
		asking.Wait()
		time.Sleep(9 * time.Second)
		z.Decide(t.Context(), a, watchPods(a, "x"))
		if n := r.count("a"); n != 1 {
			t.Errorf("%d reviews, want 1", n)
		}
		time.Sleep(2 * time.Second)
		z.Decide(t.Context(), a, watchPods(a, "x"))
		if n := r.count("a"); n != 1 {
			t.Errorf("%d reviews after the time of the answer, want 1", n)
		}
		z.Decide(t.Context(), a, watchPods(a, "y"))
		if n := r.count("a"); n != 1 {
			t.Errorf("%d reviews of another question, want 1", n)
		}
		r.fail(errors.New("connection refused"))
		for range 2 {
			if v := z.Decide(t.Context(), a, watchPods(a, "z")); v.Allowed() || v.Refusal(watchPods(a, "z")).Code != 503 {
				t.Errorf("verdict %v", v)
			}
		}
		if n := r.count("a"); n != 2 {
			t.Errorf("%d reviews, want 2: a failure was cached", n)
		}
	})
}

// TestHintsOutdateDecisions: a hint makes the questions that it concerns be asked again, in
// both directions, and no others.
func TestHintsOutdateDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeAuthorizer()
		z := newTestAuthorizer(t, r)
		a, b := callerNamed("a"), callerNamed("b")
		ask := func() { z.Decide(t.Context(), a, watchPods(a, "x")); z.Decide(t.Context(), b, watchPods(b, "x")) }
		ask()
		z.hints.add(Hint{Subjects: []rbacv1.Subject{{Kind: "User", Name: "a"}}})
		ask()
		if n, m := r.count("a"), r.count("b"); n != 2 || m != 1 {
			t.Errorf("%d reviews of a and %d of b, want 2 and 1", n, m)
		}
		// The API server may have answered without the change: the answer is used for a second.
		time.Sleep(1100 * time.Millisecond)
		ask()
		if n, m := r.count("a"), r.count("b"); n != 1 || m != 0 {
			t.Errorf("%d reviews of a and %d of b, want 1 and 0", n, m)
		}
	})
}

// TestHintConcerns: which users and namespaces a hint concerns.
func TestHintConcerns(t *testing.T) {
	sa := &user.DefaultInfo{Name: "system:serviceaccount:ns:sa", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns"},
		Extra: map[string][]string{"authentication.kubernetes.io/pod-uid": {"u1"}}}
	in := func(namespace string) authorizer.Attributes {
		return &authorizer.AttributesRecord{User: sa, ResourceRequest: true, Verb: "watch", Resource: "pods", Namespace: namespace}
	}
	subject := func(kind, namespace, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: kind, Namespace: namespace, Name: name}}
	}
	for _, tt := range []struct {
		name   string
		hint   Hint
		in     string
		rights bool
	}{
		{"everybody", Hint{}, "x", true},
		{"nobody", Hint{Subjects: []rbacv1.Subject{}}, "x", false},
		{"the ServiceAccount", Hint{Subjects: subject("ServiceAccount", "ns", "sa")}, "x", true},
		{"another namespace's", Hint{Subjects: subject("ServiceAccount", "other", "sa")}, "x", false},
		{"the namespace of the binding", Hint{Subjects: subject("ServiceAccount", "", "sa"), Namespace: "ns"}, "ns", true},
		{"a user of that name", Hint{Subjects: subject("User", "", "system:serviceaccount:ns:sa")}, "x", true},
		{"its group", Hint{Subjects: subject("Group", "", "system:serviceaccounts:ns")}, "x", true},
		{"a group of its name", Hint{Subjects: subject("Group", "", "system:serviceaccount:ns:sa")}, "x", false},
		{"a namespace", Hint{Namespace: "x"}, "x", true},
		{"another namespace", Hint{Namespace: "y"}, "x", false},
		{"another namespace, and a question about all", Hint{Namespace: "y"}, "", false},
		{"credentials", Hint{Credentials: true}, "x", false},
	} {
		if got := tt.hint.concerns(in(tt.in)); got != tt.rights {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.rights)
		}
	}
	for uid, want := range map[string]bool{"": true, "u1": true, "u2": false} {
		h := Hint{Credentials: true, PodUID: uid}
		if got := h.concernsCredential(sa); got != want {
			t.Errorf("credentials of Pod %q: %v, want %v", uid, got, want)
		}
	}
}

// TestManyHints: more hints than are told apart concern everybody, and are not forgotten.
func TestManyHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // adding takes long with the race detector, and a hint lasts for ten seconds
		h := newHints()
		before := h.count()
		for range maxHints + 1 {
			h.add(Hint{Subjects: []rbacv1.Subject{}})
		}
		a := callerNamed("a")
		if !h.concern(before, watchPods(a, "x")) {
			t.Error("hints were lost")
		}
		if h.concern(h.count(), watchPods(a, "x")) {
			t.Error("hints concern a later answer")
		}
	})
}

// TestKeys: different users and questions have different keys.
func TestKeys(t *testing.T) {
	seen := map[string]string{}
	unique := func(key, what string) {
		t.Helper()
		if other, ok := seen[key]; ok {
			t.Errorf("%s has the key of %s: %s", what, other, key)
		}
		seen[key] = what
	}
	for _, u := range []user.DefaultInfo{
		{Name: "a"}, {Name: "a", UID: "1"}, {Name: "a1:1"}, {Name: "a", Groups: []string{"b"}}, {Name: "a", Groups: []string{"b", "c"}},
		{Name: "a", Groups: []string{"bc"}}, {Name: "a", Groups: []string{"b"}, Extra: map[string][]string{"c": nil}},
		{Name: "a", Extra: map[string][]string{"b": {"c"}}}, {Name: "a", Extra: map[string][]string{"b": {"c", "d"}}},
		{Name: "a", Extra: map[string][]string{"b": {"c"}, "d": nil}}, {Name: "a", Groups: []string{"=1:b1:c"}},
	} {
		unique(userKey(&u), "user "+u.Name)
	}
	c := callerNamed("a")
	for _, url := range []string{
		"/api/v1/pods", "/api/v1/pods?watch=1", "/api/v1/namespaces/x/pods", "/api/v1/namespaces/x/pods/y", "/api/v1/namespaces/x",
		"/api/v1/pods?labelSelector=a", "/api/v1/pods?labelSelector=!a", "/api/v1/pods?labelSelector=a%3Db", "/api/v1/pods?labelSelector=a+in+(b,c)",
		"/api/v1/pods?fieldSelector=spec.nodeName%3Da", "/api/v1/pods?fieldSelector=spec.nodeName!%3Da", "/api/v1/pods?fieldSelector=metadata.name%3Da",
		"/apis/apps/v1/deployments", "/apis/apps/v1/namespaces/x/deployments/y/scale", "/version", "/at",
	} {
		a, err := AttributesOf(httptest.NewRequest("GET", url, nil), c.User)
		if err != nil {
			t.Fatal(err)
		}
		unique(questionKey(a), url)
	}
}

// TestAgrees: a request is served only if the API server's reading of it is the gateway's.
func TestAgrees(t *testing.T) {
	c := callerNamed("a")
	for url, want := range map[string]bool{
		"/api/v1/pods": true, "/api/v1/pods?watch=0": true, "/api/v1/namespaces/x/pods": true, "/api/v1/namespaces/x": true,
		"/api/v1/namespaces/x/pods/y": true, "/api/v1/pods?fieldSelector=metadata.name%3Da": true,
		"/api/v1/watch/pods": true, "/api/v1/watch/namespaces/x/pods/y": true,
	} {
		r := httptest.NewRequest("GET", url, nil)
		a, err := AttributesOf(r, c.User)
		if err != nil {
			t.Fatal(err)
		}
		target, ok := request.ParsePath(r.URL.Path)
		if !ok {
			t.Fatal(url)
		}
		if got := Agrees(a, target); got != want {
			t.Errorf("%s: %v, want %v: %+v, %+v", url, got, want, a, target)
		}
		target.Namespace = "elsewhere"
		if Agrees(a, target) {
			t.Errorf("%s: agrees with another namespace", url)
		}
	}
}

// TestExpiry: the end of a token is read from a JWT; another text has none.
func TestExpiry(t *testing.T) {
	for token, want := range map[string]int64{
		"": 0, "opaque": 0, "a.b.c": 0, "e30.e30.x": 0, // {}
		"e30.eyJleHAiOjEwMH0.x":    100, // {"exp":100}
		"e30.eyJleHAiOjEwMC41fQ.x": 100, // {"exp":100.5}
		"e30.eyJleHAiOiJ4In0.x":    0,   // {"exp":"x"}
		"e30.eyJleHAiOjFlMzAwfQ.x": 0,   // {"exp":1e300}
		strings.Repeat(".", 1000):  0,
	} {
		got := expiry(token)
		if got.IsZero() != (want == 0) || want != 0 && got.Unix() != want {
			t.Errorf("%.30q: %v, want %d", token, got, want)
		}
	}
}

// TestQuestionsOfOneUser: a user with many questions has a part of the reviews, and those of
// another user do not wait for them.
func TestQuestionsOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := newTestAuthorizer(t, newFakeAuthorizer())
		running := &slowQuestions{}
		z.review = running
		greedy, modest := callerNamed("a"), callerNamed("b")
		const questions = 100
		var asking sync.WaitGroup
		for n := range questions {
			asking.Go(func() {
				if v := z.Decide(t.Context(), greedy, watchPods(greedy, fmt.Sprint("ns-", n))); !v.Allowed() {
					t.Error(v)
				}
			})
		}
		synctest.Wait()
		if n := running.now.Load(); n != maxQuestionsPerUser {
			t.Errorf("%d reviews at a time for one user", n)
		}
		start := time.Now()
		if v := z.Decide(t.Context(), modest, watchPods(modest, "x")); !v.Allowed() || time.Since(start) != time.Second {
			t.Errorf("another user: %v after %v", v, time.Since(start)) // the clock is synctest's
		}
		asking.Wait()
		if z.asked.Keys() != 0 {
			t.Errorf("%d users are left", z.asked.Keys())
		}
	})
}

// slowQuestions allows everything, after a second.
type slowQuestions struct {
	fakeAuthorizer
	now atomic.Int32
}

func (s *slowQuestions) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	s.now.Add(1)
	defer s.now.Add(-1)
	time.Sleep(time.Second)
	return authorizer.DecisionAllow, "", nil
}
