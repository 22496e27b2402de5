// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
)

func request() (*http.Request, authorizer.Attributes) {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/a/pods?labelSelector=app%3Dx&limit=500", http.NoBody)
	r.Header.Set("User-Agent", "kubectl/v1.37.2 (linux/amd64) kubernetes/0123456")
	r.Header.Set("Authorization", "Bearer x")
	return r, attributes(r, &user.DefaultInfo{
		Name: "system:serviceaccount:a:b", UID: "0d5e3c1e-7a3c-4a8e-9d0a-2f1f0c1d7b11",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"},
		Extra:  map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=0d5e3c1e-7a3c-4a8e-9d0a-2f1f0c1d7b11"}},
	})
}

// audited is all that auditing does with a request.
func audited(a *audit.Auditor, w http.ResponseWriter, r *http.Request, attrs authorizer.Attributes) {
	r = a.Identify(w, r)
	e, err := a.Begin(r, attrs, false)
	if err != nil {
		panic(err)
	}
	e.Decided(authorizer.DecisionAllow, "", nil)
	e.Answered("cache", 123456)
	e.ResponseWriter(w, r).WriteHeader(http.StatusOK)
	e.Complete()
}

// TestOffAllocatesNothing: a gateway without auditing does not pay for it.
func TestOffAllocatesNothing(t *testing.T) {
	r, attrs := request()
	w := httptest.NewRecorder()
	if n := testing.AllocsPerRun(100, func() { audited(nil, w, r, attrs) }); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
	if got := w.Header(); got.Get("Audit-Id") != "" || audit.ID(t.Context()) != "" {
		t.Errorf("an audit ID: %v", got)
	}
}

func BenchmarkRequest(b *testing.B) {
	const none = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n  verbs: [list]\n- level: Metadata\n"
	const complete = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n"
	for _, c := range []struct{ name, policy, mode, path string }{
		{"off", "", "", ""},
		{"level=None", none, audit.ModeBlocking, ""},
		{"level=Metadata/mode=blocking", metadataPolicy, audit.ModeBlocking, ""},
		{"level=Metadata/mode=blocking/stages=ResponseComplete", complete, audit.ModeBlocking, ""},
		{"level=Metadata/mode=blocking-strict", metadataPolicy, audit.ModeBlockingStrict, ""},
		{"level=Metadata/mode=batch", metadataPolicy, audit.ModeBatch, ""},
		{"level=Metadata/log=discard", metadataPolicy, audit.ModeBlocking, "-"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var a *audit.Auditor
			if c.policy != "" {
				o := options(b, c.policy)
				o.LogMode, o.LogBatchBufferSize, o.Stdout = c.mode, 1<<22, io.Discard
				if c.path != "" {
					o.LogPath = c.path
				}
				var err error
				if a, err = audit.New(o, nil); err != nil {
					b.Fatal(err)
				}
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); a.Run(ctx) }() //nolint:errcheck
				b.Cleanup(func() { cancel(); <-ended })
			}
			r, attrs := request()
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				delete(r.Header, audit.Header)
				audited(a, w, r, attrs)
			}
		})
	}
}
