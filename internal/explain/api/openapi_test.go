// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// TestSchemas: the description has each member of each answer.
func TestSchemas(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage `json:"properties"`
				AllOf      []json.RawMessage          `json:"allOf"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(api.OpenAPI, &doc); err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, typ.Kind()) {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || !strings.HasSuffix(typ.PkgPath(), "/internal/explain/api") {
			return
		}
		seen[typ] = true
		var members []string
		for _, field := range reflect.VisibleFields(typ) {
			walk(field.Type)
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
				members = append(members, name)
			}
		}
		if schema, ok := doc.Components.Schemas[typ.Name()]; !ok {
			t.Errorf("%s is not described", typ.Name())
		} else if schema.AllOf == nil {
			slices.Sort(members)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(schema.Properties)), slices.Compact(members)); diff != "" {
				t.Errorf("%s (- described, + answered):\n%s", typ.Name(), diff)
			}
		}
	}
	for _, answer := range []any{api.Findings{}, api.Failing{}, api.Story{}, api.History{}, api.Changes{}, api.Versions{}, api.Differences{}, api.Difference{}, api.Counts{}, api.Access{}} {
		walk(reflect.TypeOf(answer))
	}
}
