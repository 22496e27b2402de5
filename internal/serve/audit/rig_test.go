// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/json"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

const metadataPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"

// A rig is a server whose requests are audited. The header Test-User authenticates.
type rig struct {
	*httptest.Server
	auditor *audit.Auditor
	path    string // of the audit log
	log     *logtest.Log
	stop    func() // ends the auditor, once

	handlers sync.WaitGroup // Close does not wait for a handler that has hijacked its connection
}

// options returns options with the policy, and a log in a folder of the test.
func options(t testing.TB, policy string) audit.Options {
	t.Helper()
	dir := t.TempDir()
	o := audit.DefaultOptions()
	o.PolicyFile, o.LogPath = filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "log", "audit.log")
	if err := os.WriteFile(o.PolicyFile, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// A handler answers an audited request.
type handler func(e *audit.Event, w http.ResponseWriter, r *http.Request)

func newRig(t *testing.T, o audit.Options, h handler) *rig {
	t.Helper()
	rg := &rig{path: o.LogPath, log: &logtest.Log{}}
	var err error
	if rg.auditor, err = audit.New(o, slog.New(slog.NewTextHandler(rg.log, nil))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- rg.auditor.Run(ctx) }()
	rg.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { rg.serve(h, w, r) }))
	rg.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	rg.stop = sync.OnceFunc(func() {
		rg.Close()
		rg.handlers.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(rg.stop)
	return rg
}

// serve is what the gateway does.
func (rg *rig) serve(h handler, w http.ResponseWriter, r *http.Request) {
	rg.handlers.Add(1)
	defer rg.handlers.Done()
	r = rg.auditor.Identify(w, r)
	u := r.Header.Get("Test-User")
	if u == "" {
		e, err := rg.auditor.Unauthenticated(r, attributes(r, nil))
		if err != nil {
			status.Write(w, r, status.Internal(err.Error()))
			return
		}
		defer e.End()
		status.Write(e.ResponseWriter(w, r), r, status.New(http.StatusUnauthorized, "Unauthorized", "Unauthorized"))
		return
	}
	e, err := rg.auditor.Begin(r, attributes(r, &user.DefaultInfo{Name: u, UID: "uid-of-" + u, Groups: strings.Split(r.Header.Get("Test-Groups"), ","), Extra: map[string][]string{"scope": {"all"}}}), false)
	if err != nil {
		status.Write(w, r, status.Internal(err.Error()))
		return
	}
	defer e.End()
	h(e, e.ResponseWriter(w, r), r)
}

var infos = &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// attributes are those of kube-apiserver's filters.
func attributes(r *http.Request, u user.Info) authorizer.Attributes {
	i, err := infos.NewRequestInfo(r)
	if err != nil {
		panic(err)
	}
	return authorizer.AttributesRecord{
		User: u, Verb: i.Verb, ResourceRequest: i.IsResourceRequest, Path: i.Path,
		Namespace: i.Namespace, Name: i.Name, Resource: i.Resource, Subresource: i.Subresource, APIGroup: i.APIGroup, APIVersion: i.APIVersion,
	}
}

// do sends a request as user jane, with further headers as names and values.
func (rg *rig) do(t *testing.T, method, uri string, headers ...string) *http.Response {
	t.Helper()
	return rg.doAs(t, method, uri, "jane", headers...)
}

// doAs sends a request as a user; "" for none.
func (rg *rig) doAs(t *testing.T, method, uri, name string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, rg.URL+uri, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Test-User", name)
	r.Header.Set("Test-Groups", "dev,system:authenticated")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := rg.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return res
}

// events stops the rig, and returns what is in the log, decoded as strictly as by an API
// server that validates.
func (rg *rig) events(t *testing.T) []auditv1.Event {
	t.Helper()
	rg.stop()
	text, err := os.ReadFile(rg.path)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func decode(t *testing.T, text []byte) (events []auditv1.Event) {
	t.Helper()
	for line := range bytes.Lines(text) {
		var e auditv1.Event
		wrong, err := json.UnmarshalStrict(line, &e)
		if err != nil || wrong != nil {
			t.Fatalf("%v %v: %.300s", err, wrong, line)
		}
		if e.Kind != "Event" || e.APIVersion != "audit.k8s.io/v1" {
			t.Fatalf("not an event: %.300s", line)
		}
		events = append(events, e)
	}
	return events
}

// summary is an event in one line.
func summary(e auditv1.Event) string {
	s := string(e.Stage) + " " + e.Verb + " " + e.RequestURI
	if e.ResponseStatus != nil {
		s += " " + http.StatusText(int(e.ResponseStatus.Code))
	}
	return s
}

func wantSummaries(t *testing.T, events []auditv1.Event, want ...string) {
	t.Helper()
	var got []string
	for _, e := range events {
		got = append(got, summary(e))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

// ok answers 200.
func ok(_ *audit.Event, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
