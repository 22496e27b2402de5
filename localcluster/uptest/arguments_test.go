// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package uptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  resources: [{resources: [configmaps]}]
- level: None
`

// TestAPIServerArgs: both API servers have the arguments, which replace localcluster's own,
// and the next up does not have them.
func TestAPIServerArgs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	clusterDir := filepath.Join(dir, "cluster")
	c := start(t, clusterDir, "--nodes", "0", "--apiservers", "2", "--apiserver-arg", "audit-policy-file="+policy,
		"--apiserver-arg", "audit-log-path="+log, "--apiserver-arg", "service-account-issuer=https://first.test", "--apiserver-arg=service-account-issuer=https://second.test,x")
	c.kubectl("create", "configmap", "audited")
	eventually(t, "an audit event", func() error {
		events, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(events) {
			if bytes.Contains(line, []byte(`"verb":"create"`)) && bytes.Contains(line, []byte(`"name":"audited"`)) {
				return nil
			}
		}
		return fmt.Errorf("not in %d bytes", len(events))
	})
	for _, args := range c.apiserverArgs() {
		var issuers []string
		for _, arg := range args {
			if issuer, ok := strings.CutPrefix(arg, "--service-account-issuer="); ok {
				issuers = append(issuers, issuer)
			}
		}
		if got := strings.Join(issuers, " "); got != "https://first.test https://second.test,x" {
			t.Errorf("the issuers are %s", got)
		}
	}
	c.run("down")
	<-c.done

	for _, args := range start(t, clusterDir).apiserverArgs() {
		for _, arg := range args {
			if strings.HasPrefix(arg, "--audit-") || strings.Contains(arg, ".test") {
				t.Errorf("the next up has %s", arg)
			}
		}
	}

	for _, arg := range []string{"audit-log-path", "=x", "--audit-log-path=x"} {
		out, err := exec.Command(c.bin, "up", "--dir", t.TempDir(), "--apiserver-arg", arg).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "must be NAME=VALUE") {
			t.Errorf("%s: %v: %s", arg, err, out)
		}
	}
}

// apiserverArgs returns the arguments of each API server.
func (c *cluster) apiserverArgs() [][]string {
	c.t.Helper()
	var state struct{ Commands map[string][]string }
	text, err := os.ReadFile(filepath.Join(c.dir, "state.json"))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	var all [][]string
	for name, args := range state.Commands {
		if strings.HasPrefix(name, "kube-apiserver") {
			all = append(all, args)
		}
	}
	if all == nil {
		c.t.Fatal("state.json has no API server")
	}
	return all
}
