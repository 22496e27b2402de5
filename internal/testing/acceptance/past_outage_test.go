// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestPastThroughOutage: while the API server is gone, the commands about the past, and
// kubectl, print the same as before.
func TestPastThroughOutage(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quietOutage)
	ns := namespace(t)
	g := recordingGateway(t)
	start := time.Now().UTC().Format(time.RFC3339Nano)
	kubectl(t, "-n", ns, "create", "deployment", "cart", "--image=cart:1", "--replicas=2")
	settled(t, ns, "cart", 2)
	observed(t, g, ns)
	then := time.Now().UTC().Format(time.RFC3339Nano)
	eventually(t, "the short names of discovery", func() bool {
		code, _ := get(t, http.DefaultClient, g.URL+"/watchkeeper/v1/history/changes?resource=deploy")
		return code == http.StatusOK
	})
	commands := [][]string{ // with cart in what they print
		{"history", "deploy/cart", "-n", ns, "--until", then, "-o", "json"},
		{"changes", "po", "deploy", "-n", ns, "--since", start, "--until", then},
		{"diff", "deploy", "-n", ns, "--from", start, "--to", then},
		{"at", then, "-n", ns, "--", "get", "deploy,rs,po", "-o", "wide"},
		{"at", then, "-n", ns, "--", "get", "deploy", "cart", "-o", "yaml"},
	}
	ask := func() (all []string) {
		for _, args := range commands {
			out, code := watchkeeper(t, g.URL, args...)
			if code > 1 || code == 1 && args[0] != "diff" || !strings.Contains(out, "cart") {
				t.Errorf("%v: exit code %d: %s", args, code, out)
			}
			all = append(all, out)
		}
		for name, command := range kubectls(t) {
			out, ok := run(t, append(command, "-s", g.URL+"/at/"+then), "-n", ns, "describe", "deployment", "cart")
			if !ok || !strings.Contains(out, "cart:1") {
				t.Errorf("%s describes %s", name, out)
			}
		}
		return all
	}
	before := ask()
	outages[quietOutage].Ready()
	outage(t, quietOutage, func() {
		if diff := cmp.Diff(before, ask()); diff != "" {
			t.Errorf("during the outage (-before +during)\n%s", diff)
		}
		file := filepath.Join(t.TempDir(), "outage.wkr")
		if out, code := watchkeeper(t, g.URL, "record", "export", "deploy", "po", "-n", ns, "-o", file); code != 0 || !strings.Contains(out, "2 resources") {
			t.Errorf("record export: exit code %d: %s", code, out)
		}
	})
}
