// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/validator"
)

// custom are the kinds of the chart that are custom resources, which the control plane of
// this test does not have.
var custom = []string{"Certificate", "HTTPRoute", "BackendTLSPolicy", "ServiceMonitor", "PrometheusRule"}

// TestSchemas: what the chart makes, of six sets of values, is valid by the schemas of the
// API server, and has no unknown field.
func TestSchemas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSchemas(t, dir)
	skip := map[string]struct{}{}
	for _, kind := range custom {
		skip[kind] = struct{}{}
	}
	v, err := validator.New([]string{filepath.Join(dir, "{{.ResourceKind}}{{.KindSuffix}}.json")}, validator.Opts{Strict: true, SkipKinds: skip})
	if err != nil {
		t.Fatal(err)
	}
	goldens, err := filepath.Glob("../chart/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[validator.Status]int{}
	for _, file := range append(goldens, "../manifests/watchkeeper.yaml") {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range v.Validate(file, f) {
			counts[r.Status]++
			if r.Status != validator.Valid && r.Status != validator.Skipped && r.Status != validator.Empty {
				sig, _ := r.Resource.Signature()
				t.Errorf("%s: %v: %v", file, sig, r.Err)
			}
		}
	}
	if len(goldens) < 6 || counts[validator.Valid] < 70 || counts[validator.Skipped] != len(custom) {
		t.Errorf("%d files; %d objects are valid, %d were skipped", len(goldens), counts[validator.Valid], counts[validator.Skipped])
	}

	// A field that is misspelt is found.
	bad := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","lables":{}},"data":{}}`
	if r := v.Validate("bad", readCloser{strings.NewReader(bad)}); len(r) != 1 || r[0].Status != validator.Invalid {
		t.Errorf("with an unknown field: %v", r)
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// writeSchemas writes a JSON schema for each kind that the API server has, from its OpenAPI.
// Objects have no other fields than those in it.
func writeSchemas(t *testing.T, dir string) {
	t.Helper()
	groups, err := api.Discovery().OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for path, group := range groups {
		text, err := group.Schema("application/json")
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Components struct {
				Schemas map[string]map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		components := map[string]any{}
		for name, schema := range document.Components.Schemas {
			components[name] = closed(schema)
		}
		for name, schema := range document.Components.Schemas {
			kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
			for _, k := range kinds {
				gvk := k.(map[string]any)
				file := strings.ToLower(fmt.Sprintf("%s-%s.json", gvk["kind"], gvk["version"]))
				if group, _, _ := strings.Cut(gvk["group"].(string), "."); group != "" { // as kubeconform names them
					file = strings.ToLower(fmt.Sprintf("%s-%s-%s.json", gvk["kind"], group, gvk["version"]))
				}
				out, err := json.Marshal(map[string]any{"$ref": "#/components/schemas/" + name, "components": map[string]any{"schemas": components}})
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), out, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// closed returns a schema whose objects have no other properties than those in it.
func closed(schema map[string]any) map[string]any {
	schema = maps.Clone(schema)
	_, open := schema["additionalProperties"]
	if _, ok := schema["properties"]; ok && !open && schema["x-kubernetes-preserve-unknown-fields"] != true {
		schema["additionalProperties"] = false
	}
	return schema
}
