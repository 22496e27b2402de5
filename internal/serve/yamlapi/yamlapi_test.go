// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package yamlapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/resource"
)

func post(contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	New(nil).ServeHTTP(w, r)
	return w
}

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// TestAsKubectl: an object is what kubectl makes of the same text.
func TestAsKubectl(t *testing.T) {
	for name, text := range map[string]string{
		"words":      "a: [yes, no, on, off, y, n, Y, N, true, True, null, Null, ~, '', yes please]",
		"keys":       "yes: 1\nno: 2\n1: 5\n1.5: 6\n'on': 7\n0400: 8\na: {on: 3, n: 4}",
		"octal":      "a: [0400, 0620, 012, 08, 0o400, 0777, -012, 00]",
		"numbers":    "a: [1_000, 0x1F, 0b11, 1e3, 1.0, 1.10, -0, -0.0, +5, .5, 5., 1e400, 12:30:45, 190:20:30]",
		"large":      "a: [9007199254740993, 9223372036854775807, -9223372036854775808, 18446744073709551615, 18446744073709551616, 0.1000000000000000055]",
		"times":      "a: [2026-11-28, 2026-11-28T10:00:00Z]",
		"quoted":     "a: ['0400', \"yes\", !!str 0400, !!str yes, !!int '7', !!binary aGk=]",
		"blocks":     "a: |\n  x\n    y\n\nb: >-\n  x\n  y\nc: |+\n  x\n\n",
		"anchors":    "a: &a {x: 0400, y: yes}\nb: *a\nc: [*a, *a]",
		"merge":      "a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: {x: 3, <<: *a}\nd: {<<: [*a, {z: 4}]}",
		"comments":   "# one\na: 1 # two\n# three",
		"documents":  "a: 1\n---\n# nothing\n---\n",
		"directive":  "a: 1\n...\n",
		"JSON":       `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"a":[0.10,9007199254740993,"yes"]}`,
		"JSON first": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, a: [yes, 0400]}",
		"characters": "a: \"\\u0085\\u2028\\x07\\U0001F600\"\nb: é😀",
	} {
		if !strings.HasPrefix(text, "{") {
			text = head + text
		}
		infos, err := resource.NewLocalBuilder().Unstructured().Stream(strings.NewReader(text), "stdin").Flatten().Do().Infos()
		if err != nil || len(infos) != 1 {
			t.Fatalf("%s: kubectl makes %d objects of it: %v", name, len(infos), err)
		}
		want, err := json.Marshal(infos[0].Object)
		if err != nil {
			t.Fatal(err)
		}
		got := post(contentType, text)
		if got.Code != http.StatusOK || got.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
			continue
		}
		if diff := cmp.Diff(tree(t, want), tree(t, got.Body.Bytes())); diff != "" {
			t.Errorf("%s: (-kubectl +gateway)\n%s", name, diff)
		}
	}
}

// tree decodes an object as kubectl and the API server do.
func tree(t *testing.T, text []byte) (object map[string]any) {
	t.Helper()
	if err := utiljson.Unmarshal(text, &object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	delete(object, "metadata")
	return object
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		method, contentType, query, body string
		code                             int
		message                          string
	}{
		"GET":             {"GET", contentType, "", "", 405, "does not allow"},
		"form":            {"POST", "text/plain", "", "a: 1", 415, "has to be application/yaml"},
		"parameter":       {"POST", contentType, "?x=1", "a: 1", 400, `there is no parameter "x"`},
		"too long":        {"POST", contentType, "", strings.Repeat("#", maxBody+1), 413, "the limit is 1536 KiB"},
		"syntax":          {"POST", contentType, "", "a: 1\nb: [\n", 400, "line 2: did not find expected node content"},
		"tab":             {"POST", contentType, "", "a:\n\tb: 1\n", 400, "line 2: found character that cannot start any token"},
		"two":             {"POST", contentType, "", "a: 1\n---\nb: 1\n", 400, "there is more than one document"},
		"two of JSON":     {"POST", contentType, "", `{"a":1}` + "\n" + `{"b":1}`, 400, "there is more than one document"},
		"after an end":    {"POST", contentType, "", "a: 1\n...\nb: 1\n", 400, "there is more than one document"},
		"none":            {"POST", contentType, "", "# nothing\n---\n", 400, "there is no object"},
		"equal keys":      {"POST", contentType, "", "a: 1\nb: 2\na: 3\n", 400, `line 3: key "a" already set in map`},
		"key of an array": {"POST", contentType, "", "[a]: 1\n", 400, "invalid map key"},
		"not UTF-8":       {"POST", contentType, "", "a: \xff", 400, "invalid"},
		"no anchor":       {"POST", contentType, "", "a: *b", 400, "unknown anchor 'b' referenced"},
		"no number":       {"POST", contentType, "", "a: .inf", 400, "unsupported value: +Inf"},
	} {
		for _, length := range []bool{true, false} {
			r := httptest.NewRequest(test.method, Path+test.query, strings.NewReader(test.body))
			r.Header.Set("Content-Type", test.contentType)
			if !length {
				r.ContentLength = -1
			}
			w := httptest.NewRecorder()
			New(nil).ServeHTTP(w, r)
			var s struct {
				Kind, Message string
				Code          int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != test.code || s.Code != test.code || s.Kind != "Status" || !strings.Contains(s.Message, test.message) {
				t.Errorf("%s: %d %.300s %v, want %d %q", name, w.Code, w.Body, err, test.code, test.message)
			}
		}
	}
}

// TestExpansion: aliases that would take much memory are refused before it is allocated.
func TestExpansion(t *testing.T) {
	doubled := func(first string, times int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "x0: &x0 %s\n", first)
		for i := range times {
			fmt.Fprintf(&b, "x%d: &x%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d,", i), 10), ","))
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"values":   doubled("{a: {}}", 9),
		"text":     "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 3000) + "]\n",
		"keys":     "a: &a {? " + strings.Repeat("x", 100_000) + " : 1}\nb: [" + strings.Repeat("*a,", 3000) + "]\n",
		"merged":   "a: &a {b: " + strings.Repeat("x", 100_000) + "}\nb: [" + strings.Repeat("{<<: *a},", 3000) + "]\n",
		"in depth": doubled("'"+strings.Repeat("x", 10_000)+"'", 3),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := post(contentType, text)
		runtime.ReadMemStats(&after)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "alias") {
			t.Errorf("%s: %d %.300s", name, w.Code, w.Body)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256<<20 {
			t.Errorf("%s allocates %d MiB", name, allocated>>20)
		} else {
			t.Logf("%s allocates %d MiB", name, allocated>>20)
		}
	}
	if w := post(contentType, "a: &a "+strings.Repeat("x", 1000)+"\nb: ["+strings.Repeat("*a,", 100)+"]\n"); w.Code != http.StatusOK {
		t.Errorf("a few aliases: %d %.300s", w.Code, w.Body)
	}
}
