// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportToStdout: the summary is on standard error, also of an output that is not a
// file; one that cannot be written is named as it was given.
func TestExportToStdout(t *testing.T) {
	demo, err := os.ReadFile("../../demo/incident.wkr")
	if err != nil {
		t.Fatal(err)
	}
	newFakeGateway(t, map[string]string{"/export": string(demo)})
	out, errs, code := run("record", "export", "-o", "-")
	if code != 0 || out != string(demo) || !strings.Contains(errs, "13 resources") || strings.Contains(errs, "names are replaced") {
		t.Errorf("%d, %d bytes: %s", code, len(out), errs)
	}
	missing := filepath.Join(t.TempDir(), "none", "x.wkr")
	if _, errs, code := run("record", "export", "-o", missing); code != 1 || errs != "watchkeeper: --output: "+missing+": no such file or directory\n" {
		t.Errorf("%d %s", code, errs)
	}
	newFakeGateway(t, map[string]string{"/export": string(demo[:len(demo)/2])})
	if _, errs, code := run("record", "export", "-o", "-"); code != 1 || !strings.Contains(errs, "the recording ended early") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestExportOfRVs: an export of one resource takes its resourceVersions; the order of the ends
// is checked as in other commands.
func TestExportOfRVs(t *testing.T) {
	demo, err := os.ReadFile("../../demo/incident.wkr")
	if err != nil {
		t.Fatal(err)
	}
	f := newFakeGateway(t, map[string]string{"/export": string(demo)})
	for line, want := range map[string]string{
		"--since 7":                    "--since 7: a resourceVersion is that of one resource: name it, as in 'watchkeeper record export pods --since 7', or use a time",
		"pods nodes --since 7":         "--since 7: a resourceVersion is that of one resource",
		"pods --since 9 --until 7":     "--since 9 is after --until 7: swap them",
		"--since 10s --until 20s":      "--since 10s is after --until 20s: swap them",
		"--since 20s --until sometime": "--until: \"sometime\" is not a moment",
	} {
		args := append([]string{"record", "export", "-o", "-"}, strings.Fields(line)...)
		if out, errs, code := run(args...); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
	if _, errs, code := run("record", "export", "pods", "--since", "7", "-o", "-"); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
	if asked := f.questions(); !strings.HasSuffix(asked[len(asked)-1], "/export?namespace=default&resource=pods&since=rv%3A7&until=now") {
		t.Errorf("asked %q", asked)
	}
}

// TestExportNamespace: an export is of the namespace of the current context, as everywhere,
// unless -A is given or what is named has no namespaces.
func TestExportNamespace(t *testing.T) {
	demo, err := os.ReadFile("../../demo/incident.wkr")
	if err != nil {
		t.Fatal(err)
	}
	f := newFakeGateway(t, map[string]string{"/export": string(demo)})
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(`{"current-context":"a","contexts":[{"name":"a","context":{"namespace":"shop"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{"": "shop", "-n pay": "pay", "pods no": "shop", "-A": "", "nodes": ""} {
		f.questions()
		args := append([]string{"record", "export", "--kubeconfig", config, "-o", "-"}, strings.Fields(line)...)
		if _, errs, code := run(args...); code != 0 {
			t.Errorf("%s: %d %s", line, code, errs)
		}
		asked := f.questions()
		query, err := url.ParseQuery(strings.TrimPrefix(asked[len(asked)-1], "/export?"))
		if err != nil || query.Get("namespace") != want {
			t.Errorf("%s: asked %q, want namespace %q", line, asked, want)
		}
	}
}
