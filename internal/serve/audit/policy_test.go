// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"cmp"
	"log/slog"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// examplePolicy has the rules of the Kubernetes documentation's example, in its order, with
// those of the script that starts API servers on GCE for reads and nonResourceURLs.
const examplePolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  resources:
  - group: ""
    resources: [pods]
- level: Metadata
  resources:
  - group: ""
    resources: [pods/log, pods/status]
- level: None
  resources:
  - group: ""
    resources: [configmaps]
    resourceNames: [controller-leader]
- level: None
  users: [system:kube-proxy]
  verbs: [watch]
  resources:
  - group: ""
    resources: [endpoints, services]
- level: None
  userGroups: [system:authenticated]
  nonResourceURLs: ["/api*", /version]
- level: Request
  resources:
  - group: ""
    resources: [configmaps]
  namespaces: [kube-system]
- level: None
  verbs: [get, list, watch]
  resources:
  - group: apps
- level: Metadata
  resources:
  - group: ""
    resources: [secrets, configmaps]
- level: Request
  omitStages: [ResponseStarted]
  resources:
  - group: ""
  - group: extensions
- level: Metadata
  users: [jane]
  nonResourceURLs: ["/healthz*"]
`

func TestExamplePolicy(t *testing.T) {
	o := options(t, examplePolicy)
	rg := newRig(t, o, ok)
	complete := func(verb, uri string) string { return "ResponseComplete " + verb + " " + uri + " OK" }
	started := func(verb, uri string) string { return "ResponseStarted " + verb + " " + uri + " OK" }
	var want []string
	for _, c := range []struct {
		method, uri, user string
		want              []string
	}{
		{"GET", "/api/v1/pods", "", []string{complete("list", "/api/v1/pods")}},
		{"GET", "/api/v1/pods?watch=1", "", []string{started("watch", "/api/v1/pods?watch=1"), complete("watch", "/api/v1/pods?watch=1")}},
		{"GET", "/api/v1/namespaces/a/pods/p/log", "", []string{started("get", "/api/v1/namespaces/a/pods/p/log"), complete("get", "/api/v1/namespaces/a/pods/p/log")}},
		{"GET", "/api/v1/namespaces/a/configmaps/controller-leader", "", nil},
		{"GET", "/api/v1/services?watch=true", "system:kube-proxy", nil},
		{"GET", "/version", "", nil},
		{"GET", "/apis/apps", "", nil},
		{"GET", "/api/v1/namespaces/kube-system/configmaps/c", "", []string{complete("get", "/api/v1/namespaces/kube-system/configmaps/c")}},
		{"GET", "/apis/apps/v1/deployments", "", nil},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments/d", "", nil}, // no rule
		{"GET", "/api/v1/namespaces/a/secrets", "", []string{complete("list", "/api/v1/namespaces/a/secrets")}},
		{"GET", "/api/v1/services?watch=true", "", []string{complete("watch", "/api/v1/services?watch=true")}}, // omitStages
		{"GET", "/healthz/etcd", "", []string{complete("get", "/healthz/etcd")}},
		{"GET", "/livez", "", nil},
	} {
		if res := rg.doAs(t, c.method, c.uri, cmp.Or(c.user, "jane")); res.Header.Get("Audit-Id") == "" {
			t.Errorf("%s has no audit ID", c.uri)
		}
		want = append(want, c.want...)
	}
	events := rg.events(t)
	wantSummaries(t, events, want...)
	for _, e := range events {
		if e.Level != "Metadata" || e.RequestObject != nil || e.ResponseObject != nil {
			t.Errorf("%s has level %s and %v, %v", summary(e), e.Level, e.RequestObject, e.ResponseObject)
		}
	}
	if !strings.Contains(rg.log.String(), "no request and response bodies") || !strings.Contains(rg.log.String(), `rules="[1 6 9]"`) {
		t.Errorf("no warning of the levels: %s", rg.log)
	}
}

func TestMetadataPolicyDoesNotWarn(t *testing.T) {
	if rg := newRig(t, options(t, metadataPolicy), ok); rg.log.String() != "" {
		t.Error(rg.log)
	}
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		change func(*audit.Options)
		want   string // of the error; "" for none
		log    string
	}{
		"defaults":       {metadataPolicy, func(*audit.Options) {}, "", ""},
		"off":            {"", func(o *audit.Options) { *o = audit.DefaultOptions() }, "", ""},
		"zero":           {"", func(o *audit.Options) { *o = audit.Options{} }, "", ""},
		"no policy":      {"", func(o *audit.Options) { o.PolicyFile = "" }, "", "--audit-log-path needs --audit-policy-file"},
		"no log":         {metadataPolicy, func(o *audit.Options) { o.LogPath = "" }, "", "--audit-policy-file needs --audit-log-path"},
		"missing policy": {"", func(o *audit.Options) { o.PolicyFile += ".not" }, "--audit-policy-file", ""},
		"empty policy":   {"apiVersion: audit.k8s.io/v1\nkind: Policy\n", func(*audit.Options) {}, "0 rules", ""},
		"old policy":     {strings.Replace(metadataPolicy, "v1", "v1beta1", 1), func(*audit.Options) {}, "--audit-policy-file", ""},
		"wrong level":    {strings.Replace(metadataPolicy, "Metadata", "Everything", 1), func(*audit.Options) {}, "Everything", ""},
		"wrong mode":     {metadataPolicy, func(o *audit.Options) { o.LogMode = "strict" }, "--audit-log-mode \"strict\"", ""},
		"wrong format":   {metadataPolicy, func(o *audit.Options) { o.LogFormat = "yaml" }, "--audit-log-format \"yaml\"", ""},
		"negative":       {metadataPolicy, func(o *audit.Options) { o.LogMaxAge = -1 }, "--audit-log-maxage -1", ""},
		"no buffer":      {metadataPolicy, func(o *audit.Options) { o.LogMode, o.LogBatchBufferSize = audit.ModeBatch, 0 }, "--audit-log-batch-buffer-size 0", ""},
		"a directory":    {metadataPolicy, func(o *audit.Options) { o.LogPath = "/" }, "--audit-log-path", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, c.policy)
			c.change(&o)
			var log logtest.Log
			a, err := audit.New(o, slog.New(slog.NewTextHandler(&log, nil)))
			switch {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			case (a != nil) != (name == "defaults"):
				t.Errorf("an auditor: %t", a != nil)
			case !strings.Contains(log.String(), c.log) || c.log == "" && log.String() != "":
				t.Errorf("log %s, want %q", &log, c.log)
			}
		})
	}
}
