// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
)

// A lifeVersion is one version of the definition of Lives.
type lifeVersion struct {
	name string
	// description is that of the schema. If all schemas are equal, the API server
	// requires equal selectable fields, too.
	description      string
	unserved         bool
	fields, columns  []string
	storage, colored bool // colored: spec.color has a default
}

// define creates or changes the definition of lives.life.example.com and waits
// until the API server serves the change.
func define(t *testing.T, scope string, versions ...lifeVersion) {
	t.Helper()
	crd := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": lives},
	}
	var all []any
	for _, v := range versions {
		color := map[string]any{"type": "string"}
		if v.colored {
			color["default"] = "none"
		}
		properties := map[string]any{
			"color": color, "shape": map[string]any{"type": "string"},
			"size": map[string]any{"type": "integer"}, "flag": map[string]any{"type": "boolean"},
			"deep": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
		}
		one := map[string]any{
			"name": v.name, "served": !v.unserved, "storage": v.storage,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type":        "object",
				"description": v.description,
				"properties":  map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
			}},
		}
		var fields, columns []any
		for _, path := range v.fields {
			fields = append(fields, map[string]any{"jsonPath": path})
		}
		for _, path := range v.columns {
			columns = append(columns, map[string]any{"name": path, "type": "string", "jsonPath": path})
		}
		if fields != nil {
			one["selectableFields"] = fields
		}
		if columns != nil {
			one["additionalPrinterColumns"] = columns
		}
		all = append(all, one)
	}
	crd["spec"] = map[string]any{
		"group": "life.example.com", "scope": scope, "versions": all,
		"names": map[string]any{"plural": "lives", "singular": "life", "kind": "Life"},
	}
	// Not apply, which would merge the versions. The definition makes a round trip
	// through JSON because an Unstructured may hold only a few types.
	text, err := json.Marshal(crd)
	o := &unstructured.Unstructured{}
	if err == nil {
		err = o.UnmarshalJSON(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error { // the API server updates the status
		old, err := definitions(t).Get(t.Context(), lives, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = definitions(t).Create(t.Context(), o, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		o.SetResourceVersion(old.GetResourceVersion())
		_, err = definitions(t).Update(t.Context(), o, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	established(t, lives)
	client, up := direct(t)
	eventually(t, "the definition in discovery", func() bool {
		for _, v := range versions {
			code, body := get(t, client, up+"/apis/life.example.com/"+v.name)
			if !v.unserved && !strings.Contains(body, fmt.Sprintf(`"name":"lives","singularName":"life","namespaced":%v`, scope == "Namespaced")) ||
				v.unserved && code != http.StatusNotFound {
				return false
			}
		}
		return true
	})
}

const lives = "lives.life.example.com"

// undefine deletes the definition when the test ends.
func undefine(t *testing.T) {
	t.Cleanup(func() {
		_ = cluster.Kubectl(context.Background(), "delete", "crd", lives, "--ignore-not-found").Run()
	})
}

// live creates or changes an object. It does not use kubectl, which caches
// discovery for hours.
func live(t *testing.T, ns, version, name, spec string) {
	t.Helper()
	client, up := direct(t)
	path := "/apis/life.example.com/" + version
	if ns != "" {
		path += "/namespaces/" + ns
	}
	path += "/lives/" + name + "?fieldManager=test&force=true"
	manifest := fmt.Sprintf("{apiVersion: life.example.com/%s, kind: Life, metadata: {name: %s}, spec: %s}", version, name, spec)
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, up+path, strings.NewReader(manifest))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/apply-patch+yaml")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode/100 == 2 {
			return
		}
		if time.Now().After(end) { // the resource may not be served yet
			t.Fatalf("%s: %s %s", path, resp.Status, body)
		}
	}
}

// TestSelectableFields selects custom resources by the fields of each version.
func TestSelectableFields(t *testing.T) {
	ns := namespace(t)
	undefine(t)
	define(t, "Namespaced",
		lifeVersion{name: "v1", storage: true, fields: []string{".spec.color", ".spec.size", ".spec.flag", ".spec.deep.key"}},
		lifeVersion{name: "v1beta1", description: "beta", fields: []string{".spec.shape"}},
	)
	live(t, ns, "v1", "full", `{color: "red, or so", size: 5, flag: true, deep: {key: x}, shape: round}`)
	live(t, ns, "v1", "zero", `{color: "", size: 0, flag: false, deep: {}}`)
	live(t, ns, "v1", "empty", `{}`)
	live(t, ns, "v1", "large", `{size: 9007199254740993}`)
	client, up := direct(t)
	got, served := 0, 0
	for _, version := range []string{"v1", "v1beta1"} {
		path := "/apis/life.example.com/" + version + "/lives?resourceVersion=0"
		cached(t, gw, path)
		before := servedLists(t, gw)
		alike(t, gw, "all", path)
		var queries []string
		for _, label := range []string{
			"metadata.name", "metadata.namespace", "metadata.uid", "spec.color", "spec.size", "spec.flag", "spec.deep.key", "spec.deep", "spec.shape", ".spec.color",
		} {
			for _, value := range []string{"", "full", ns, `red\, or so`, "5", "0", "true", "false", "x", "round", "9007199254740993", "nothing"} {
				for _, operator := range []string{"=", "!="} {
					query := path + "&fieldSelector=" + url.QueryEscape(label+operator+value)
					queries = append(queries, query)
					if code, _ := get(t, client, up+query); code == http.StatusOK {
						served++
					}
				}
			}
		}
		alike(t, gw, "selected", queries...)
		got += servedLists(t, gw) - before
	}
	if got < served || served < 100 {
		t.Errorf("%d of %d lists are from the cache", got, served)
	}
}

// TestDefinitionLife changes a definition in all ways while clients follow its
// objects at both versions: plain and selective ones, in all forms, and with
// streaming lists. After each change they hold the same objects as clients of the
// API server, and reads have the same responses.
func TestDefinitionLife(t *testing.T) {
	ns := namespace(t)
	undefine(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	color := lifeVersion{name: "v1", storage: true, fields: []string{".spec.color"}}
	define(t, "Namespaced", color)
	all := followBoth(ctx, t, gw, &wg, asJSON,
		"/apis/life.example.com/v1/lives?x=",
		"/apis/life.example.com/v1/namespaces/"+ns+"/lives?fieldSelector=spec.color%3Dred",
		"/apis/life.example.com/v1/lives?fieldSelector=spec.shape!%3Dround",
		"/apis/life.example.com/v1/lives?labelSelector=!nothing",
		"/apis/life.example.com/v1beta1/lives?fieldSelector=metadata.name%3Dbase",
		"/apis/life.example.com/v1beta1/lives?fieldSelector=spec.shape%3Dround",
	)
	for _, form := range []followForm{asTable, asMeta} {
		all = append(all, followBoth(ctx, t, gw, &wg, form,
			"/apis/life.example.com/v1/lives?x=", "/apis/life.example.com/v1beta1/lives?fieldSelector=spec.shape%3Dround")...)
	}
	n := 0
	step := func(when string, versions ...lifeVersion) {
		t.Helper()
		define(t, "Namespaced", versions...)
		served := ""
		for _, v := range versions {
			if !v.unserved {
				served = v.name
			}
		}
		n++
		live(t, ns, served, "base", fmt.Sprintf(`{color: red, shape: round, size: %d}`, n))
		live(t, ns, served, fmt.Sprintf("one-%d", n), `{shape: square}`)
		live(t, ns, served, fmt.Sprintf("two-%d", n), `{color: red}`)
		agree(t, when, all)
		var paths []string
		for _, version := range []string{"v1", "v1beta1"} {
			for _, path := range []string{"/lives", "/namespaces/" + ns + "/lives", "/namespaces/" + ns + "/lives/base", "/lives/base"} {
				for _, query := range []string{"", "&fieldSelector=spec.color%3Dred", "&fieldSelector=spec.shape%3Dround", "&fieldSelector=metadata.namespace%3D" + ns} {
					paths = append(paths, "/apis/life.example.com/"+version+path+"?resourceVersion=0"+query)
				}
			}
		}
		alike(t, gw, when, paths...)
	}
	step("as created", color)
	color.columns = []string{".spec.color", ".spec.size"}
	step("with columns", color)
	shape := lifeVersion{name: "v1", storage: true, fields: []string{".spec.shape"}}
	step("with another field to select by", shape)
	both := lifeVersion{name: "v1", storage: true, fields: []string{".spec.shape", ".spec.color"}}
	beta := lifeVersion{name: "v1beta1", description: "beta", fields: []string{".spec.shape"}}
	step("with two fields and a second version", both, beta)
	twin := both
	twin.name, twin.storage = "v1beta1", false
	step("with two equal versions", both, twin)
	both.storage, beta.storage = false, true
	step("stored as the second version", both, beta)
	both.colored = true
	step("with a default in the first", both, beta)
	both.unserved = true
	step("with the first not served", both, beta)
	both.unserved = false
	step("with the first served again", both, beta)
	beta.unserved = true
	step("with the second not served", beta, both)
	beta.unserved = false
	step("with both again", both, beta)
	kubectl(t, "delete", "crd", lives)
	agree(t, "deleted", all)
	step("there again", both, beta)
	for _, p := range all {
		t.Logf("%s: %d lists through the gateway, %d at the API server", p.gateway.name, p.gateway.begins, p.direct.begins)
	}
}

// TestDefinitionReplaced deletes a definition and recreates it at once with
// another scope, while the gateway watches its objects.
func TestDefinitionReplaced(t *testing.T) {
	ns := namespace(t)
	undefine(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	v1 := lifeVersion{name: "v1", storage: true, fields: []string{".spec.color"}}
	const all = "/apis/life.example.com/v1/lives?x="
	var followers []pair
	for i, scope := range []string{"Namespaced", "Cluster", "Cluster", "Namespaced"} {
		at := map[string]string{"Namespaced": ns}[scope]
		define(t, scope, v1)
		live(t, at, "v1", "red", `{color: red}`)
		live(t, at, "v1", fmt.Sprintf("blue-%d", i), `{color: blue}`)
		if followers == nil {
			followers = followBoth(ctx, t, gw, &wg, asJSON, all, all+"&fieldSelector=spec.color%3Dred")
			followers = append(followers, followBoth(ctx, t, gw, &wg, asTable, all)...)
			followers = append(followers, followBoth(ctx, t, gw, &wg, asMeta, all)...)

		}
		when := fmt.Sprintf("%d. %s", i, scope)
		agree(t, when, followers)
		var paths []string
		for _, path := range []string{"/lives", "/namespaces/" + ns + "/lives", "/namespaces/" + ns + "/lives/red", "/lives/red"} {
			for _, selector := range []string{"", "metadata.namespace%3D" + ns, "metadata.name%3Dred", "spec.color!%3Dred"} {
				paths = append(paths, "/apis/life.example.com/v1"+path+"?resourceVersion=0&fieldSelector="+selector)
			}
		}
		alike(t, gw, when, paths...)
		cached(t, gw, all+"&resourceVersion=0")
		kubectl(t, "delete", "crd", lives)
	}
	agree(t, "deleted", followers)
}
