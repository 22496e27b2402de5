// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"reflect"
	"testing"
)

func TestParseSteps(t *testing.T) {
	paths, steps, err := ParseSteps(`spec.a[0].b,metadata.labels['x/y'],status.conditions[?(@.type=="Ready")].status,spec.c[*]`)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"spec.a[0].b", "metadata.labels['x/y']", `status.conditions[?(@.type=="Ready")].status`, "spec.c[*]"}; !reflect.DeepEqual(paths, want) {
		t.Errorf("the paths are %q, want %q", paths, want)
	}
	want := [][]Step{
		{{Member: "spec"}, {Member: "a"}, {Element: true}, {Member: "b"}},
		{{Member: "metadata"}, {Member: "labels"}, {Member: "x/y"}},
		{{Member: "status"}, {Member: "conditions"}, {Where: true, Member: "type", Value: "Ready"}, {Member: "status"}},
		{{Member: "spec"}, {Member: "c"}, {Each: true}},
	}
	if !reflect.DeepEqual(steps, want) {
		t.Errorf("the steps are %+v, want %+v", steps, want)
	}
	if _, _, err := ParseSteps("spec..a"); !errors.Is(err, ErrPath) {
		t.Errorf("the error is %v", err)
	}
}
