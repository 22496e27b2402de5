// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheetcmd

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// TestMistakes: a command line that is wrong says so, and leaves the file as it was.
func TestMistakes(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	broken := filepath.Join(dir, "broken.xlsx")
	if err := os.WriteFile(broken, []byte("namespace,name\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.xlsx")
	for args, want := range map[string]string{
		"":                             "needs the name of a file",
		"deployments":                  "needs the name of a file that ends in .xlsx",
		missing:                        "does not exist: name the kinds",
		missing + " --apply":           "does not exist: write it first",
		missing + " pods --apply":      "leave kinds",
		missing + " --yes":             "--yes is for --apply",
		missing + " --apply --discard": "exclude each other",
		missing + " pods":              "",
		broken:                         "it is no .xlsx file",
		broken + " --apply":            "it is no .xlsx file",
	} {
		var out, errs bytes.Buffer
		cmd := New(Options{In: strings.NewReader(""), Out: &out, Err: &errs})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append(strings.Fields(args), "--server="+api.URL))
		err := cmd.ExecuteContext(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if text, err := os.ReadFile(broken); err != nil || string(text) != "namespace,name\n" {
		t.Errorf("%s %v", text, err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("there is a file")
	}
}

// TestSave: a file that another program has changed meanwhile stays, and so does its mode.
func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.xlsx")
	c := &command{path: path}
	if err := c.save([]byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := c.save([]byte("2")); err == nil || !strings.Contains(err.Error(), "changed by another program") {
		t.Errorf("the error is %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	c.data = []byte("1")
	if err := c.save([]byte("3")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || string(text) != "3" || info.Mode().Perm() != 0o640 {
		t.Errorf("%s %v %v", text, err, info.Mode())
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("%v %v", files, err)
	}
}

// TestWholeObject: the error of an invalid patch does not have the object, which may be a Secret.
func TestWholeObject(t *testing.T) {
	const reason = "json: cannot unmarshal number 2.5 into Go struct field DeploymentSpec.spec.replicas of type int32"
	e := &refusal{}
	e.Message = ` "" is invalid: patch: Invalid value: "{\"data\":{\"password\":\"c2VjcmV0\"}}": ` + reason
	if got := e.Error(); got != reason {
		t.Error(got)
	}
	e.Message = `Deployment.apps "web" is invalid: spec.replicas: Invalid value: "-1": must be greater than or equal to 0`
	if got := e.Error(); got != e.Message {
		t.Error(got)
	}
}

// TestNothingThere: a namespace that does not exist is an error, and a column that no object has a
// note, as for a path that was mistyped.
func TestNothingThere(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]string{
			"/api":                         `{"kind":"APIVersions","versions":["v1"]}`,
			"/apis":                        `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
			"/api/v1":                      `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["list"]}]}`,
			"/api/v1/namespaces/nope/pods": `{"kind":"PodList","items":[]}`,
			"/api/v1/namespaces/shop/pods": `{"kind":"PodList","items":[{"metadata":{"name":"a","namespace":"shop"},"spec":{"nodeName":"n"}}]}`,
		}[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if answer == "" {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind":"Status","code":404,"message":"namespaces \"nope\" not found","details":{"name":"nope","kind":"namespaces"}}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer api.Close()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	for args, want := range map[string]string{
		"-n nope": `error: namespaces "nope" not found`,
		"-n shop --columns spec.nodeName,spec.nodename": "no object of pods has a value at spec.nodename: check --columns\nwrote ",
		"-n shop --columns spec.nodeName":               "wrote ",
	} {
		file := filepath.Join(t.TempDir(), "a.xlsx")
		var errs bytes.Buffer
		cmd := New(Options{In: strings.NewReader(""), Out: &errs, Err: &errs})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{file, "pods", "--server=" + api.URL, "--cache-dir=" + dir}, strings.Fields(args)...))
		if err := cmd.ExecuteContext(context.Background()); err != nil {
			errs.WriteString("error: " + err.Error())
		}
		if !strings.HasPrefix(errs.String(), want) {
			t.Errorf("%s: %s, want %s", args, errs.String(), want)
		}
	}
}

// TestPaths: whatever a workbook names, a request goes to the object of that name, and its query
// is that of the command.
func TestPaths(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.EscapedPath()+" "+r.URL.RawQuery)
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	c := &cluster{server: server.URL, http: server.Client()}
	for part, want := range map[string]string{"web": "web", "web?x=": "web%3Fx=", "a/b": "a%2Fb", "a#b": "a%23b", "%2e%2e": "%252e%252e", "..": "", "": ""} {
		got = nil
		o := &sheet.Object{Resource: sheet.Resource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "shop", Name: part}
		err := c.patch(t.Context(), o, nil, true)
		if want == "" {
			if err == nil || got != nil {
				t.Errorf("%q: %v, %v", part, got, err)
			}
			continue
		}
		if want := []string{"/apis/apps/v1/namespaces/shop/deployments/" + want + " dryRun=All&fieldManager=" + sheet.FieldManager}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", part, got, err, want)
		}
		o.Resource.Resource, o.Name = part, "web"
		if err := c.patch(t.Context(), o, nil, true); err != nil || !strings.HasSuffix(got[1], "/web dryRun=All&fieldManager="+sheet.FieldManager) {
			t.Errorf("the resource %q: %v, %v", part, got, err)
		}
	}
}
