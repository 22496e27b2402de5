// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what is rendered to testdata and manifests")

const (
	dir       = "watchkeeper"
	namespace = "watchkeeper"
)

// sets are the value sets of the chart's folder ci.
func sets(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ci", "*.yaml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d value sets, %v", len(files), err)
	}
	sets := map[string]map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]any{}
		if err := yaml.UnmarshalStrict(text, &values); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		sets[strings.TrimSuffix(filepath.Base(file), ".yaml")] = values
	}
	return sets
}

// render returns what the chart makes of values, and its notes.
func render(values map[string]any) (objects, notes string, err error) {
	chart, err := loader.Load(dir)
	if err != nil {
		return "", "", err
	}
	release := common.ReleaseOptions{Name: "watchkeeper", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return "", "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", "", err
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(files[name])
		switch {
		case strings.HasSuffix(name, "NOTES.txt"):
			notes = text + "\n"
		case strings.HasSuffix(name, ".yaml") && text != "":
			fmt.Fprintf(&out, "---\n%s\n", strings.TrimPrefix(text, "---\n"))
		}
	}
	return out.String(), notes, nil
}

func TestLint(t *testing.T) {
	for name, values := range sets(t) {
		for _, m := range lint.RunAll(dir, values, namespace).Messages {
			if !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

// TestGoldens: what the chart makes of six sets of values is what testdata has, and of no
// values what deploy/manifests has. "go test ./chart -update" writes them.
func TestGoldens(t *testing.T) {
	for name, values := range sets(t) {
		objects, notes, err := render(values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, filepath.Join("testdata", name+".yaml"), objects)
		golden(t, filepath.Join("testdata", name+".notes.txt"), notes)
	}
}

// manifestHead is the beginning of manifests/watchkeeper.yaml.
const manifestHead = `# The chart with its default values, for those without Helm:
#   kubectl create namespace watchkeeper
#   kubectl apply -f watchkeeper.yaml
# Made by "go test ./chart -update".
`

func TestManifest(t *testing.T) {
	objects, _, err := render(nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(objects) {
		if !strings.HasPrefix(strings.TrimSpace(line), "helm.sh/chart:") {
			out.WriteString(strings.Replace(line, "managed-by: Helm", "managed-by: kubectl", 1))
		}
	}
	golden(t, "../manifests/watchkeeper.yaml", manifestHead+out.String())
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		a, b := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		i := 0
		for i < min(len(a), len(b)) && a[i] == b[i] {
			i++
		}
		t.Errorf("%s, line %d: the chart makes\n%s\nand the file has\n%s\n(go test ./chart -update writes it)", file, i+1,
			strings.Join(a[i:min(i+3, len(a))], "\n"), strings.Join(b[i:min(i+3, len(b))], "\n"))
	}
}

// TestBadValues: each mistake gets one line that names the value.
func TestBadValues(t *testing.T) {
	for text, want := range map[string]string{
		"replicas: two":                                    "at '/replicas': got string, want integer",
		"replicas: -1":                                     "at '/replicas': minimum: got -1, want 0",
		"tls: {secretName: a}":                             "at '/tls/secretName': value must be ''",
		"extraVolumeMounts: [{name: a}]":                   "at '/extraVolumeMounts/0': missing property 'mountPath'",
		"replica: 2":                                       "at '': additional properties 'replica' not allowed",
		"tls: {mode: letsEncrypt}":                         "at '/tls/mode': value must be one of 'selfSigned', 'certManager', 'secret'",
		"tls: {mode: secret}":                              "at '/tls/secretName': minLength: got 0, want 1",
		"tls: {mode: certManager}":                         "at '/tls/issuer/name': minLength: got 0, want 1",
		"ingress: {enabled: true}":                         "at '/ingress/host': minLength: got 0, want 1",
		"httpRoute: {enabled: true}":                       "at '/httpRoute/parentRefs': minItems: got 0, want 1",
		"recording: {volume: {size: 10GB}}":                "at '/recording/volume/size': '10GB' does not match pattern",
		"recording: {resources: []}":                       "at '/recording/resources': minItems: got 0, want 1",
		"resources: {\"\": [pods, secrets]}":               "at '/resources//1': 'not' failed",
		"resources: {\"\": [\"*\"]}":                       "at '/resources//0': 'not' failed",
		"tls: {mode: secret, secretName: a, hasCA: false}": "at '/tls/serverName': minLength: got 0, want 1",
		"fullnameOverride: wk.prod":                        "at '/fullnameOverride': 'wk.prod' does not match pattern",
		"extraArgs: [verbose]":                             "at '/extraArgs/0': 'verbose' does not match pattern '^-'",
		"image: {digest: latest}":                          "at '/image/digest': 'latest' does not match pattern",
		"containerResources: {limits: {memory: lots}}":     "at '/containerResources/limits/memory': 'lots' does not match pattern",
	} {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		_, _, err := render(values)
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		var lines []string
		for line := range strings.Lines(err.Error()) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "- at '") {
				lines = append(lines, line)
			}
		}
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "- "+want) {
			t.Errorf("%s: %v\nwant one line: %s", text, err, want)
		}
	}
}

// TestBadSizes: a volume on which nothing would be recorded, and a history that is larger than its
// volume.
func TestBadSizes(t *testing.T) {
	for text, want := range map[string]string{
		"{enabled: true, volume: {size: 100Mi}}": "recording.volume.size is 100Mi: it has to be 1G or more",
		"{enabled: true, maxBytes: 50Gi}":        "recording.maxBytes is 50Gi, which is more than the volume has (recording.volume.size, 10Gi)",
	} {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte("recording: "+text), &values); err != nil {
			t.Fatal(err)
		}
		if _, _, err := render(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestSizes: nine tenths of a volume, or of a limit, in bytes.
func TestSizes(t *testing.T) {
	for size, want := range map[string]string{"10Gi": "9663676416", "1.5Gi": "1449551462", "5000M": "4500000000", "1000000000": "900000000", "2Ti": "1979120929996"} {
		objects, _, err := render(map[string]any{"recording": map[string]any{"enabled": true, "volume": map[string]any{"size": size}}})
		if err != nil || !strings.Contains(objects, "--history-max-bytes="+want+"\n") {
			i := strings.Index(objects, "--history-max-bytes")
			t.Errorf("%s: %v, %.60s; want %s", size, err, objects[max(i, 0):], want)
		}
	}
}

// TestQuoted: values that YAML would take for something else.
func TestQuoted(t *testing.T) {
	objects, _, err := render(map[string]any{
		"priorityClassName": "123", "tls": map[string]any{"mode": "certManager", "issuer": map[string]any{"name": "456"}},
		"ingress": map[string]any{"enabled": true, "host": "*.example.com", "className": "789", "tlsSecretName": "012"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(objects, "---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Errorf("%v in\n%s", err, document)
		}
	}
	for _, want := range []string{`host: "*.example.com"`, `hosts: ["*.example.com"]`, `name: "456"`, `priorityClassName: "123"`, `ingressClassName: "789"`, `secretName: "012"`} {
		if !strings.Contains(objects, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestRoleWithoutSecrets: the gateway may read no Secret but that of its certificate,
// unless the values say so.
func TestRoleWithoutSecrets(t *testing.T) {
	for name, values := range sets(t) {
		objects, _, err := render(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(objects, "---\n") {
			var role struct {
				Kind  string
				Rules []struct{ Resources, ResourceNames []string }
			}
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") && (role.Kind != "Role" || len(rule.ResourceNames) != 1) && values["secrets"] != true {
					t.Errorf("%s: a %s with %v", name, role.Kind, rule)
				}
			}
		}
	}
}

// TestReadme: the chart's README is what helm-docs makes of README.md.gotmpl and values.yaml.
func TestReadme(t *testing.T) {
	cmd := exec.Command("go", "tool", "helm-docs", "--chart-search-root", dir, "--sort-values-order", "file", "--dry-run", "--log-level", "warning")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join(dir, "README.md"), strings.TrimSpace(string(out))+"\n")
}
