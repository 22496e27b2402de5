// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
)

func TestMetadata(t *testing.T) {
	forwarded := make(chan string, 1)
	rg := newRig(t, options(t, metadataPolicy), func(e *audit.Event, w http.ResponseWriter, r *http.Request) {
		forwarded <- r.Header.Get("Audit-ID") + " " + audit.ID(r.Context())
		e.Decided(authorizer.DecisionAllow, "RBAC: allowed", nil)
		e.Answered("cache", 42)
		io.WriteString(w, "{}") //nolint:errcheck
	})
	res := rg.do(t, "GET", "/api/v1/namespaces/a/pods/p?x=1", "Audit-ID", "the-id", "User-Agent", "kubectl/v1", "X-Forwarded-For", "192.0.2.1, 192.0.2.2",
		"Impersonate-User", "joe", "Impersonate-Group", "g1", "Impersonate-Group", "g2", "Impersonate-Uid", "7", "Impersonate-Extra-Acme.com%2fScope", "a")
	if got := res.Header["Audit-Id"]; len(got) != 1 || got[0] != "the-id" {
		t.Errorf("the response has audit ID %q", got)
	}
	if got := <-forwarded; got != "the-id the-id" {
		t.Errorf("forwarded: %q", got)
	}
	events := rg.events(t)
	wantSummaries(t, events, "RequestReceived get /api/v1/namespaces/a/pods/p?x=1", "ResponseComplete get /api/v1/namespaces/a/pods/p?x=1 OK")
	if events[0].ImpersonatedUser != nil { // kube-apiserver's filter for it is a later one
		t.Error("impersonated when received")
	}
	got := events[1]
	if got.StageTimestamp.Before(&got.RequestReceivedTimestamp) || got.RequestReceivedTimestamp.IsZero() {
		t.Errorf("received %v, complete %v", got.RequestReceivedTimestamp, got.StageTimestamp)
	}
	want := auditv1.Event{
		TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: "audit.k8s.io/v1"},
		Level:    "Metadata", AuditID: "the-id", Stage: "ResponseComplete",
		RequestURI: "/api/v1/namespaces/a/pods/p?x=1", Verb: "get",
		User:                     authenticationv1.UserInfo{Username: "jane", UID: "uid-of-jane", Groups: []string{"dev", "system:authenticated"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"all"}}},
		ImpersonatedUser:         &authenticationv1.UserInfo{Username: "joe", UID: "7", Groups: []string{"g1", "g2"}, Extra: map[string]authenticationv1.ExtraValue{"acme.com/scope": {"a"}}},
		SourceIPs:                []string{"192.0.2.1", "192.0.2.2", "127.0.0.1"},
		UserAgent:                "kubectl/v1",
		ObjectRef:                &auditv1.ObjectReference{Resource: "pods", Namespace: "a", Name: "p", APIVersion: "v1"},
		ResponseStatus:           &metav1.Status{Code: 200},
		RequestReceivedTimestamp: got.RequestReceivedTimestamp,
		StageTimestamp:           got.StageTimestamp,
		Annotations: map[string]string{
			"watchkeeper/source": "cache", "watchkeeper/resource-version": "42",
			"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "RBAC: allowed",
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("event (-want +got):\n%s", d)
	}
}

func TestDecisions(t *testing.T) {
	rg := newRig(t, options(t, metadataPolicy), func(e *audit.Event, _ http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/deny":
			e.Decided(authorizer.DecisionDeny, "no", nil)
		case "/none":
			e.Decided(authorizer.DecisionNoOpinion, "", nil)
		case "/error":
			e.Decided(authorizer.DecisionNoOpinion, "", errors.New("unreachable"))
		case "/both":
			e.Decided(authorizer.DecisionAllow, "", errors.New("one role is missing"))
		}
	})
	want := map[string]map[string]string{
		"/deny":  {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": "no"},
		"/none":  {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""},
		"/error": {"authorization.k8s.io/reason": "internal error"},
		"/both":  {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
	}
	for path := range want {
		rg.do(t, "GET", path)
	}
	seen := 0
	for _, e := range rg.events(t) {
		if e.Stage == "ResponseComplete" {
			seen++
			if d := cmp.Diff(want[e.RequestURI], e.Annotations); d != "" {
				t.Errorf("%s (-want +got):\n%s", e.RequestURI, d)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d events", seen, len(want))
	}
}

func TestStages(t *testing.T) {
	const watch = "/api/v1/pods?watch=true"
	for name, c := range map[string]struct {
		uri     string
		handler handler
		want    []string
	}{
		"list": {"/api/v1/pods", ok, []string{"ResponseComplete list /api/v1/pods OK"}},
		"nothing written": {"/api/v1/pods", func(*audit.Event, http.ResponseWriter, *http.Request) {},
			[]string{"ResponseComplete list /api/v1/pods OK"}},
		"watch": {watch, func(_ *audit.Event, w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			io.WriteString(w, "{}") //nolint:errcheck
		}, []string{"ResponseStarted watch " + watch + " OK", "ResponseComplete watch " + watch + " OK"}},
		"watch without an answer": {watch, func(*audit.Event, http.ResponseWriter, *http.Request) {},
			[]string{"ResponseStarted watch " + watch + " OK", "ResponseComplete watch " + watch + " OK"}},
		"watch refused": {watch, func(_ *audit.Event, w http.ResponseWriter, r *http.Request) {
			status.Write(w, r, status.Expired("too old"))
		}, []string{"ResponseStarted watch " + watch + " Gone", "ResponseComplete watch " + watch + " Gone"}},
		"watch on a hijacked connection": {watch, func(_ *audit.Event, w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") //nolint:errcheck
				err = conn.Close()
			}
			if err != nil {
				panic(err)
			}
		}, []string{"ResponseStarted watch " + watch + " OK", "ResponseComplete watch " + watch + " OK"}},
		"exec": {"/api/v1/namespaces/a/pods/p/exec", func(_ *audit.Event, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusBadGateway)
		}, []string{"ResponseStarted get /api/v1/namespaces/a/pods/p/exec Bad Gateway", "ResponseComplete get /api/v1/namespaces/a/pods/p/exec Bad Gateway"}},
	} {
		t.Run(name, func(t *testing.T) {
			rg := newRig(t, options(t, metadataPolicy), c.handler)
			rg.do(t, "GET", c.uri)
			events := rg.events(t)
			if len(events) == 0 || events[0].Stage != "RequestReceived" {
				t.Fatalf("events %v", events)
			}
			wantSummaries(t, events[1:], c.want...)
			if last := events[len(events)-1].ResponseStatus; strings.Contains(name, "without") && last.Message != "Connection closed early" {
				t.Errorf("status %+v", last)
			}
			for _, e := range events[1:] {
				if name == "watch refused" && (e.ResponseStatus.Message != "too old" || e.ResponseStatus.Reason != "Expired") {
					t.Errorf("status %+v", e.ResponseStatus)
				}
			}
		})
	}
}

func TestPanics(t *testing.T) {
	rg := newRig(t, options(t, metadataPolicy), func(_ *audit.Event, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bug":
			panic("a bug")
		case "/begun":
			w.WriteHeader(http.StatusAccepted)
		}
		panic(http.ErrAbortHandler)
	})
	for _, path := range []string{"/bug", "/begun", "/gone"} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", rg.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Test-User", "jane")
		if res, err := rg.Client().Do(r); err == nil {
			res.Body.Close()
			t.Errorf("%s is answered with %s", path, res.Status)
		}
	}
	events := rg.events(t)
	wantSummaries(t, events,
		"RequestReceived get /bug", "Panic get /bug Internal Server Error",
		"RequestReceived get /begun", "ResponseComplete get /begun Accepted",
		"RequestReceived get /gone", "ResponseComplete get /gone OK")
	if s := events[1].ResponseStatus; s.Message != "APIServer panic'd: a bug" || s.Reason != "InternalError" || s.Status != "Failure" {
		t.Errorf("status %+v", s)
	}
}

func TestUnauthenticated(t *testing.T) {
	rg := newRig(t, options(t, metadataPolicy), ok)
	res := rg.doAs(t, "GET", "/api/v1/secrets?access_token=hush", "")
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %s", res.Status)
	}
	events := rg.events(t)
	wantSummaries(t, events, "ResponseStarted list /api/v1/secrets?access_token=REDACTED Unauthorized")
	want := &metav1.Status{Status: "Failure", Reason: "Unauthorized", Message: "Unauthorized", Code: 401}
	if d := cmp.Diff(want, events[0].ResponseStatus); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}
	if d := cmp.Diff(authenticationv1.UserInfo{}, events[0].User); d != "" {
		t.Errorf("user (-want +got):\n%s", d)
	}
}

// TestFailures: the Status of a failure is recorded as the client gets it, unless it
// could quote what a client has sent in secret, or comes from a Pod.
func TestFailures(t *testing.T) {
	invalid := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   "Failure", Reason: "Invalid", Code: 422, Message: "data: Invalid value: \"quoted\"",
		Details: &metav1.StatusDetails{Name: "x", Causes: []metav1.StatusCause{{Field: "data", Message: "quoted"}}},
	}
	proto := func() []byte {
		raw, err := invalid.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		u := runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: "Status", APIVersion: "v1"}, Raw: raw}
		body, err := u.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte("k8s\x00"), body...)
	}()
	rg := newRig(t, options(t, metadataPolicy), func(_ *audit.Event, w http.ResponseWriter, r *http.Request) {
		code, body := http.StatusUnprocessableEntity, []byte(nil)
		switch r.Header.Get("Accept") {
		case "proto":
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
			body = proto
		case "text":
			w.Header().Set("Content-Type", "text/plain")
			body = []byte(`{"kind":"Status","apiVersion":"v1","message":"text"}`)
		case "long":
			w.Header().Set("Content-Type", "application/json")
			body = fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","message":"%s"}`, strings.Repeat("quoted", 10000))
		case "garbage":
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
			body = []byte("k8s\x00\xff\xff\xff\xff\xff")
		case "conflict":
			status.Write(w, r, status.New(http.StatusConflict, "Conflict", "x exists"))
			return
		default:
			status.Write(w, r, invalid)
			return
		}
		w.WriteHeader(code)
		for _, b := range body { // as it may come through a proxy
			w.Write([]byte{b}) //nolint:errcheck
		}
	})
	recorded := func(reason, message string, details bool) string {
		return fmt.Sprint(reason, " ", message, " ", details)
	}
	all := recorded("Invalid", invalid.Message, true)
	cases := []struct{ uri, accept, want string }{
		{"/api/v1/namespaces/a/configmaps", "json", all},
		{"/api/v1/namespaces/a/configmaps", "proto", all},
		{"/api/v1/namespaces/a/configmaps", "text", recorded("", "", false)},
		{"/api/v1/namespaces/a/configmaps", "long", recorded("", "", false)},
		{"/api/v1/namespaces/a/configmaps", "garbage", recorded("", "", false)},
		{"/api/v1/namespaces/a/secrets", "json", recorded("Invalid", "", false)},
		{"/api/v1/namespaces/a/secrets/x", "proto", recorded("Invalid", "", false)},
		{"/api/v1/namespaces/a/secrets", "conflict", recorded("Conflict", "x exists", false)},
		{"/api/v1/namespaces/a/serviceaccounts/x/token", "json", recorded("Invalid", "", false)},
		{"/apis/authentication.k8s.io/v1/tokenreviews", "json", recorded("Invalid", "", false)},
		{"/api/v1/namespaces/a/services/x/proxy/", "json", recorded("", "", false)},
	}
	for i, c := range cases {
		rg.do(t, "POST", c.uri, "Accept", c.accept, "Audit-ID", fmt.Sprint(i))
	}
	seen := 0
	for _, e := range rg.events(t) {
		if e.Stage != "ResponseComplete" {
			continue
		}
		var i int
		fmt.Sscan(string(e.AuditID), &i) //nolint:errcheck
		c, s := cases[i], e.ResponseStatus
		seen++
		wantCode := int32(422)
		if c.accept == "conflict" {
			wantCode = 409
		}
		if got := recorded(string(s.Reason), s.Message, s.Details != nil); got != c.want || s.Code != wantCode {
			t.Errorf("%s, %s: recorded %d %s, want %s", c.uri, c.accept, s.Code, got, c.want)
		}
	}
	if seen != len(cases) {
		t.Errorf("%d of %d events", seen, len(cases))
	}
}

// TestStream: an event completes after the handler has returned, as that of a watch
// that other goroutines write.
func TestStream(t *testing.T) {
	begun := make(chan *audit.Event, 1)
	o := options(t, metadataPolicy)
	rg := newRig(t, o, ok)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = rg.auditor.Identify(w, r)
		e, err := rg.auditor.Begin(r, attributes(r, nil), true)
		if err != nil {
			t.Error(err)
		}
		e.ResponseStarted(http.StatusOK)
		begun <- e
	})
	rg.Config.Handler = h
	rg.do(t, "GET", "/watchkeeper/v1/multiwatch")
	e := <-begun
	e.Answered("extension", 0)
	e.Complete()
	e.Complete()
	e.ResponseStarted(http.StatusTeapot)
	wantSummaries(t, rg.events(t), "RequestReceived get /watchkeeper/v1/multiwatch",
		"ResponseStarted get /watchkeeper/v1/multiwatch OK", "ResponseComplete get /watchkeeper/v1/multiwatch OK")
}
