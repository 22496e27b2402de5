// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestComplete: words are completed from the server of the command line.
func TestComplete(t *testing.T) {
	const pods = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[` +
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","labels":{"app":"web","app.kubernetes.io/part":"shop"}},"spec":{"nodeName":"n1","containers":[{"name":"c"}]}},` +
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"api-0","labels":{"app":"api"}},"spec":{"priority":7}}]}`
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	changes := `{"items":[{"name":"web-0","time":"` + soon + `","summary":["from the future"]},{"name":"web-0","time":"2026-01-02T12:00:00.5Z","summary":["deleted","x"]},{"name":"web-0","time":"2026-01-02T12:00:00.1Z","summary":["created"]}]}`
	f := newFakeGateway(t, map[string]string{
		"/api/v1/namespaces/default/pods": pods,
		"/api/v1/namespaces/shop/pods":    `{"kind":"PodList","apiVersion":"v1","items":[]}`,
		"/api/v1/pods":                    pods,
		"/changes":                        changes,
	})
	t.Setenv("KUBECACHEDIR", t.TempDir())
	const moment = "2026-01-02T12:00:01Z\tweb-0: deleted; x"
	for line, want := range map[string][]string{
		"get pods -L ":             {"app", "app.kubernetes.io/part"},
		"get pods -L app,app.":     {"app,app.kubernetes.io/part"},
		"get pods -L app, -n shop": nil,
		"get pods -l a":            {"app=", "app.kubernetes.io/part="},
		"get pods -l app=":         {"app=api", "app=web"},
		"get pods -l app.kubernetes.io/part=shop,app=w": {"app.kubernetes.io/part=shop,app=web"},
		"get pods/web-0 --sort-by .spec":                {".spec.containers[0].name", ".spec.nodeName", ".spec.priority"},
		"get pods --sort-by .metadata.labels.app\\":     {`.metadata.labels.app\.kubernetes\.io/part`},
		"get pods -A --sort-by .spec.n":                 {".spec.nodeName"},
		"get nothing --sort-by .":                       nil,
		"get --sort-by .":                               nil,
		"get pods --at 2":                               {moment},
		"get pods --at 1":                               {"1m", "10m", "1h", "1d"},
		"history pods/web-0 --since 2026":               {moment},
		"changes --until 2026-01-02T12":                 {moment},
		"diagnose --at 3":                               {"30m"},
		"diagnose -n shop -o ":                          {"text", "json", "yaml"},
		"diff pods --from 3":                            {"30m"},
		"at 2026":                                       {moment},
		"story pods/web-0 --since 2026":                 {moment},
		"story pods/web-0 -o m":                         {"text", "json", "markdown"},
		"at 10m g":                                      nil,
		"record export --since 6":                       {"6h"},
	} {
		words := strings.Split(line, " ")
		out, _, code := run(append([]string{"__complete"}, words...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		got := lines[:len(lines)-1] // the last one is the directive
		if code != 0 || !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s: %q, want %q (exit code %d)", line, got, want, code)
		}
	}
	if asked := f.questions(); !slices.ContainsFunc(asked, func(s string) bool { return strings.Contains(s, "filter=web-0") }) {
		t.Errorf("the changes of one object were not asked for: %q", asked)
	}
}
