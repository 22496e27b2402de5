// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A goMod is what "go mod edit -json" and "go work edit -json" print.
type goMod struct {
	Module  struct{ Path string }
	Use     []struct{ DiskPath string }
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
	Tool []struct{ Path string }
}

// goCommand runs go in a folder of the repository.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join("../../..", dir)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Logf("%s", exit.Stderr)
		}
		t.Fatalf("%s in %s: %v", cmd, dir, err)
	}
	return string(out)
}

// readMod reads a folder's go.mod, or another file of that form.
func readMod(t *testing.T, dir string, file ...string) (m goMod) {
	t.Helper()
	if err := json.Unmarshal([]byte(goCommand(t, dir, append([]string{"mod", "edit", "-json"}, file...)...)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRequireNothing: a program that imports the informer or testcluster gets no other
// module, not even by their tests. Within the workspace, the compiler does not check this.
func TestRequireNothing(t *testing.T) {
	for _, dir := range []string{"informer", "localcluster/testcluster"} {
		m := readMod(t, dir)
		for _, r := range m.Require {
			t.Errorf("%s/go.mod requires %s", dir, r.Path)
		}
		if len(m.Replace)+len(m.Tool) > 0 {
			t.Errorf("%s/go.mod replaces %v and has the tools %v", dir, m.Replace, m.Tool)
		}
		if others := goCommand(t, dir, "list", "-deps", "-test", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./..."); others != "" {
			t.Errorf("%s imports from %s", dir, others)
		}
	}
}

// adapterRequires is what informer/clientgo/go.mod may require directly, all of which
// client-go requires, too.
var adapterRequires = map[string]bool{
	module + "informer":        true,
	"k8s.io/api":               true,
	"k8s.io/apimachinery":      true,
	"k8s.io/client-go":         true,
	"k8s.io/klog/v2":           true,
	"github.com/google/go-cmp": true, // tests
	"go.uber.org/goleak":       true, // tests
}

// TestAdaptersRequireClientGo: a program that imports the adapters gets client-go, and
// nothing that client-go does not have anyway.
func TestAdaptersRequireClientGo(t *testing.T) {
	for _, r := range readMod(t, "informer/clientgo").Require {
		if !r.Indirect && !adapterRequires[r.Path] {
			t.Errorf("informer/clientgo/go.mod requires %s", r.Path)
		}
	}
}

// TestModuleVersions: go.work has all modules of the informer, the modules there require each other
// at one version, which is the one that go.work replaces, and no go.mod that users see
// replaces a module: "go install" refuses that.
func TestModuleVersions(t *testing.T) {
	var work goMod
	if err := json.Unmarshal([]byte(goCommand(t, ".", "work", "edit", "-json", "go.work")), &work); err != nil {
		t.Fatal(err)
	}
	version := ""
	one := func(where, v string) {
		if version == "" {
			version = v
		}
		if v != version {
			t.Errorf("%s has %s, not %s", where, v, version)
		}
	}
	used := map[string]bool{}
	for _, u := range work.Use {
		dir := filepath.Clean(u.DiskPath)
		m := readMod(t, dir)
		used[dir] = true
		if len(m.Replace) > 0 {
			t.Errorf("%s/go.mod replaces %v", dir, m.Replace)
		}
		for _, r := range m.Require {
			if strings.HasPrefix(r.Path, module) {
				one(dir+"/go.mod: "+r.Path, r.Version)
			}
		}
	}
	for _, r := range work.Replace {
		if strings.HasPrefix(r.Old.Path, module) {
			one("go.work: "+r.Old.Path, r.Old.Version)
		}
	}
	err := filepath.WalkDir("../../../informer", func(path string, d fs.DirEntry, err error) error {
		dir, _ := filepath.Rel("../../..", filepath.Dir(path))
		if err == nil && d.Name() == "go.mod" && dir != "informer/clientgo/compat" && !used[dir] {
			t.Errorf("go.work does not use %s", dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOlderKubernetes: localcluster/kubernetes-1.34.mod, and its like, has the direct
// requirements of localcluster/go.mod, with a Kubernetes and staging modules of the
// version in its name. Only kwok's modules are newer.
func TestOlderKubernetes(t *testing.T) {
	direct := func(m goMod) map[string]string {
		versions := map[string]string{}
		for _, r := range m.Require {
			if !r.Indirect {
				versions[r.Path] = r.Version
			}
		}
		return versions
	}
	files, err := filepath.Glob("../../../localcluster/kubernetes-*.mod")
	if err != nil || len(files) == 0 {
		t.Fatal("no file for an older Kubernetes", err)
	}
	newest := readMod(t, "localcluster")
	for _, file := range files {
		file = filepath.Base(file)
		m := readMod(t, "localcluster", file)
		want, got := slices.Sorted(maps.Keys(direct(newest))), slices.Sorted(maps.Keys(direct(m)))
		if !slices.Equal(want, got) {
			t.Errorf("%s requires %q, not as go.mod %q", file, got, want)
		}
		minor := strings.TrimSuffix(strings.TrimPrefix(file, "kubernetes-1."), ".mod")
		version := direct(m)["k8s.io/kubernetes"]
		if !strings.HasPrefix(version, "v1."+minor+".") {
			t.Errorf("%s has Kubernetes %s", file, version)
		}
		staging := strings.Replace(version, "v1.", "v0.", 1)
		ofKwok := []string{"k8s.io/cri-api", "k8s.io/cri-client", "k8s.io/cri-streaming", "k8s.io/streaming"}
		replaced := map[string]string{}
		for _, r := range m.Replace {
			replaced[r.Old.Path] = r.New.Version
		}
		for _, r := range newest.Replace {
			if path := r.Old.Path; !slices.Contains(ofKwok, path) && replaced[path] != staging {
				t.Errorf("%s has %s %q, not %s", file, path, replaced[path], staging)
			}
		}
	}
}

// TestUnknownKubernetes: make says in one line which older versions there are.
func TestUnknownKubernetes(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "../../..", "bin/localcluster", "K8S=1.2")
	out, err := cmd.CombinedOutput()
	if err == nil || bytes.Count(out, []byte("\n")) != 1 || !bytes.Contains(out, []byte("K8S is one of: 1.")) {
		t.Errorf("%v: %s", err, out)
	}
}
