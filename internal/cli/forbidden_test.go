// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/cli"
)

// TestForbidden: whichever right is missing, every command that reads the gateway's own API says
// what to do next, without words of that API.
func TestForbidden(t *testing.T) {
	const past = "ask an administrator for the ClusterRole watchkeeper-past of docs/shared-mode.md\n"
	const none = "you may list none of the recorded resources in "
	refuse := func(message string) string { return `{"kind":"Status","code":403,"message":"` + message + `"}` }
	noPast := refuse(`forbidden: User \"team\" cannot get path \"/watchkeeper/v1/history\"`)
	cannot := refuse(`User \"team\" cannot list resource \"pods\" in API group \"\"`)
	index := `{"recording":{"state":"on"},"resources":[{"resource":"pods","epochs":[{"span":{"from":{"resourceVersion":"1","time":"2026-01-01T00:00:00Z"},"to":{"resourceVersion":"9","time":"2026-01-01T01:00:00Z"}}}]}],"denied":["deployments.apps"]}`
	const story = "/watchkeeper/v1/story/api/v1/namespaces/default/pods/a"
	file := filepath.Join(t.TempDir(), "a.wkr")
	tried := []string{"serve", "open", "version", "completion", "sheet"} // without that API
	for _, test := range []struct{ line, one, all string }{
		{"history pods/a", "can-i", ""},
		{"story pods/a", "can-i", ""},
		{"diagnose", "can-i", "-n"},
		{"changes pods", "can-i", "-n"},
		{"diff pods", "can-i", "-n"},
		{"record export -o " + file, "can-i", "-n"},
		{"at now get pods", "", ""},
		{"get pods --at now", "", ""},
	} {
		command := strings.Fields(test.line)
		tried = append(tried, command[0])
		newFakeGateway(t, map[string]string{"": noPast, story: noPast})
		if _, errs, code := run(command...); code == 0 || !strings.HasSuffix(errs, past) {
			t.Errorf("%s without the right to the past: %d %s", test.line, code, errs)
		}
		answers := map[string]string{"": index, "/versions/api/v1/namespaces/shop/pods/a": cannot, "/watchkeeper/v1/story/api/v1/namespaces/shop/pods/a": cannot, "/changes": cannot, "/diff/api/v1/namespaces/shop/pods": cannot}
		answers["/diff/api/v1/pods"], answers["/export"], answers["/watchkeeper/v1/findings"] = cannot, refuse(none+"x"), refuse(none+"x")
		newFakeGateway(t, answers)
		for _, scope := range []struct{ flags, hint string }{{"-n shop", test.one}, {"-A", test.all}} {
			want := map[string]string{"can-i": "'kubectl auth can-i --list -n shop' says what you may\n", "-n": ": name a namespace with -n\n"}[scope.hint]
			if want == "" {
				continue
			}
			if _, errs, code := run(append(slices.Clone(command), strings.Fields(scope.flags)...)...); code == 0 || !strings.HasSuffix(errs, want) || strings.Contains(errs, "parameter") {
				t.Errorf("%s %s: %d %s, want %s", test.line, scope.flags, code, errs, want)
			}
		}
	}
	newFakeGateway(t, map[string]string{"": index, "/at/now/api": refuse(`forbidden: User \"team\" cannot get path \"/at\"`)})
	if _, errs, code := run("at", "now", "get", "pods"); code == 0 || !strings.HasSuffix(errs, past) {
		t.Errorf("at: %d %s", code, errs)
	}
	for _, cmd := range cli.Command().Commands() {
		if !slices.Contains(tried, cmd.Name()) {
			t.Errorf("the command %s was not tried", cmd.Name())
		}
	}
}
