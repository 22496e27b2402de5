// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

const live = `{"metadata":{"uid":"u1","name":"web","annotations":{"a/b":"1"}},"spec":{"replicas":2,"paused":true,"args":["x","y"],"containers":[{"name":"side","image":"s"},{"name":"web","image":"w","resources":{}}]},"status":{"ready":1}}`

// TestPatch: the operations of edits, and the object after them, as the API server's
// library applies them.
func TestPatch(t *testing.T) {
	const uid = `{"op":"test","path":"/metadata/uid","value":"u1"},`
	for name, test := range map[string]struct {
		edits      [][3]string // path, old, new
		operations string
		after      string // a part of the object
		refused    string
	}{
		"replace":         {[][3]string{{"spec.replicas", "2", "5"}}, `{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":5}`, `"replicas":5`, ""},
		"remove":          {[][3]string{{"spec.paused", "true", "null"}}, `{"op":"test","path":"/spec/paused","value":true},{"op":"remove","path":"/spec/paused"}`, `"replicas":2`, ""},
		"escaped":         {[][3]string{{"metadata.annotations['a/b']", `"1"`, `"2"`}}, `{"op":"test","path":"/metadata/annotations/a~1b","value":"1"},{"op":"replace","path":"/metadata/annotations/a~1b","value":"2"}`, `"a/b":"2"`, ""},
		"add":             {[][3]string{{"metadata.annotations.c", "null", `"3"`}}, `{"op":"test","path":"/metadata/annotations/c","value":null},{"op":"add","path":"/metadata/annotations/c","value":"3"}`, `"c":"3"`, ""},
		"missing parents": {[][3]string{{"spec.a.b.c", "null", "true"}}, `{"op":"test","path":"/spec/a","value":null},{"op":"add","path":"/spec/a","value":{}},{"op":"add","path":"/spec/a/b","value":{}},{"op":"add","path":"/spec/a/b/c","value":true}`, `"b":{"c":true}`, ""},
		"the same parent": {[][3]string{{"metadata.labels.x", "null", `"1"`}, {"metadata.labels.y", "null", `"2"`}}, `{"op":"test","path":"/metadata/labels","value":null},{"op":"add","path":"/metadata/labels","value":{}},{"op":"add","path":"/metadata/labels/x","value":"1"},{"op":"test","path":"/metadata/labels/y","value":null},{"op":"add","path":"/metadata/labels/y","value":"2"}`, `"labels":{"x":"1","y":"2"}`, ""},
		"index":           {[][3]string{{"spec.args[1]", `"y"`, `"z"`}}, `{"op":"test","path":"/spec/args/1","value":"y"},{"op":"replace","path":"/spec/args/1","value":"z"}`, `["x","z"]`, ""},
		"condition":       {[][3]string{{`spec.containers[?(@.name=="web")].image`, `"w"`, `"v"`}}, `{"op":"test","path":"/spec/containers/1/name","value":"web"},{"op":"test","path":"/spec/containers/1/image","value":"w"},{"op":"replace","path":"/spec/containers/1/image","value":"v"}`, `"image":"v"`, ""},
		"below condition": {[][3]string{{`spec.containers[?(@.name=="web")].resources.limits.cpu`, "null", `"1"`}}, `{"op":"test","path":"/spec/containers/1/name","value":"web"},{"op":"test","path":"/spec/containers/1/resources/limits","value":null},{"op":"add","path":"/spec/containers/1/resources/limits","value":{}},{"op":"add","path":"/spec/containers/1/resources/limits/cpu","value":"1"}`, `"limits":{"cpu":"1"}`, ""},
		"made already":    {[][3]string{{"spec.replicas", "1", "2"}}, "", "", ""},
		"changed":         {[][3]string{{"spec.replicas", "3", "5"}}, "", "", "it was changed meanwhile: it was 3 and is 2 now"},
		"appeared":        {[][3]string{{"metadata.annotations['a/b']", "null", `"5"`}}, "", "", `it was nothing and is "1" now`},
		"no element":      {[][3]string{{`spec.containers[?(@.name=="db")].image`, `"w"`, `"v"`}}, "", "", "no such element"},
		"no array":        {[][3]string{{"spec.volumes[0].name", "null", `"v"`}}, "", "", "cannot be made in a cell"},
		"no object":       {[][3]string{{"spec.replicas.x", "null", `"v"`}}, "", "", "is no object any more"},
	} {
		o := Object{Name: "web", UID: "u1"}
		for _, e := range test.edits {
			o.Edits = append(o.Edits, Edit{Path: e[0], Old: json.RawMessage(e[1]), New: json.RawMessage(e[2])})
		}
		operations, edits, err := Patch(json.RawMessage(live), o)
		if err != nil {
			t.Fatal(err)
		}
		want := "null"
		if test.operations != "" {
			want = "[" + uid + test.operations + "]"
		}
		text, _ := json.Marshal(operations)
		if string(text) != want {
			t.Errorf("%s: the operations are\n%s\nwant\n%s", name, text, want)
		}
		refused := ""
		if len(edits) > 0 && edits[0].Refused != nil {
			refused = edits[0].Refused.Error()
		}
		if (refused == "") != (test.refused == "") || !strings.Contains(refused, test.refused) {
			t.Errorf("%s: refused: %q, want %q", name, refused, test.refused)
		}
		if operations == nil {
			continue
		}
		patch, err := jsonpatch.DecodePatch(text)
		if err != nil {
			t.Fatal(err)
		}
		after, err := patch.Apply([]byte(live))
		if err != nil || !strings.Contains(string(after), test.after) {
			t.Errorf("%s: %s %v, want %s", name, after, err, test.after)
		}
		// Tests fail at an object that has changed.
		if _, err := patch.Apply([]byte(strings.NewReplacer(`"u1"`, `"u2"`).Replace(live))); err == nil {
			t.Errorf("%s: applied to another object", name)
		}
	}
	o := Object{UID: "u0", Edits: []Edit{{Path: "spec.replicas", Old: json.RawMessage("2"), New: json.RawMessage("3")}}}
	if operations, edits, err := Patch(json.RawMessage(live), o); err != nil || operations != nil || edits[0].Refused == nil || !strings.Contains(edits[0].Refused.Error(), "another object") {
		t.Errorf("%v %v %v", operations, edits, err)
	}
}

func TestNewValue(t *testing.T) {
	for _, test := range []struct {
		path, old string
		cell      any
		want      string // or what the refusal contains
	}{
		{"spec.replicas", "2", 5.0, "5"},
		{"spec.replicas", "2", "7", "7"},
		{"spec.replicas", "2", "07", "is no number"},
		{"spec.replicas", "2", "many", "is no number"},
		{"spec.replicas", "2", true, "is no number"},
		{"spec.replicas", "2", nil, "null"},
		{"spec.replicas", "null", 0.1 + 0.2, "0.3"},
		{"spec.replicas", "null", "x", `"x"`},
		{"spec.replicas", "null", "5", `"5"`},
		{"spec.paused", "true", "FALSE", "false"},
		{"spec.paused", "true", 1.0, "neither true nor false"},
		{"spec.paused", "null", true, "true"},
		{"spec.image", `"a"`, 5.0, `"5"`},
		{"spec.image", `"a"`, true, `"true"`},
		{"metadata.labels.x", "null", 5.0, `"5"`},
		{"metadata.annotations['a/b']", "null", true, `"true"`},
		{"spec.template.metadata.labels.x", "null", 1.0, `"1"`},
		{"spec.template.spec.nodeSelector.x", "null", 1.0, `"1"`},
		{"spec.selector.matchLabels.x", "null", 1.0, `"1"`},
		{"data.key", "null", 1e6, `"1000000"`},
		{"spec.data.key", "null", 1.0, "1"},
		{"spec.args[0]", `"x"`, nil, "cannot be removed"},
		{"spec.replicas", "2", ErrorValue("#N/A"), "the error #N/A"},
		{"status.x", "1", 2.0, "written by controllers"},
		{"metadata.name", `"a"`, "b", "only labels and annotations"},
		{"metadata.labels", "null", "b", "only labels and annotations"},
		{"kind", `"a"`, "b", "is fixed"},
		{"spec.x[*]", `["a"]`, "b", "several values"},
		{"spec.x", `{"a":1}`, "b", "objects and arrays"},
		{"spec.x", `"` + strings.Repeat("x", 40000) + `"`, "b", "longer than a cell"},
	} {
		value, err := newValue(json.RawMessage(test.old), test.path, test.cell)
		if got := string(value) + fmt.Sprint(err); !strings.Contains(got, test.want) || (err == nil) != (string(value) == test.want) {
			t.Errorf("%s from %.20s to %v: %s, %v, want %s", test.path, test.old, test.cell, value, err, test.want)
		}
	}
}
