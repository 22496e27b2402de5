// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/watchkeeper/watchkeeper/"

// layers are the packages of the program, top to bottom. A package may import only
// packages of lower layers (its tests may import others).
var layers = [][]string{
	{"cmd/watchkeeper"},
	{"internal/cli"},
	{"internal/cli/sharedmode", "internal/cli/sheetcmd", "internal/cli/storytext"},
	{"internal/cli/refusal", "internal/cli/termtext", "internal/cli/values"},
	{"internal/cli/get"},
	{"internal/cli/completion", "internal/cli/livetable"},
	{"internal/cli/livetable/feed", "internal/cli/livetable/screen"},
	{"internal/cli/livetable/table"},
	{"internal/cli/connect", "internal/cli/untranslated"},

	{"internal/serve/server"},
	{"internal/serve/gateway"},
	{"internal/serve/accessapi", "internal/serve/delegated", "internal/serve/historyapi", "internal/serve/multiwatch", "internal/serve/passthrough", "internal/serve/rbacwatch", "internal/serve/workbookapi", "internal/serve/yamlapi"},
	{"internal/serve/audit", "internal/serve/httpstream", "internal/serve/selfreview"},
	{"internal/serve/h2", "internal/serve/servingcert", "internal/serve/sheet", "internal/serve/webpage"},
	{"ui"},

	{"internal/record/recorder"},
	{"internal/record/past", "internal/record/recording"},
	{"internal/record/history"},
	{"internal/record/history/delta", "internal/record/history/budget", "internal/record/history/failstop"},

	{"internal/cluster/watchcache"},
	{"internal/cluster/access"},
	{"internal/cluster/upstream"},

	{"internal/protocol/request", "internal/protocol/fairness"},
	{"internal/protocol/status", "internal/protocol/wire"},

	{"internal/timeline"},

	{"internal/explain/findings", "internal/explain/story"},
	{"internal/explain/api", "internal/explain/workload", "internal/explain/story/edges"},
	{"internal/explain/change"},
	{"internal/explain/spans", "internal/explain/words"},

	{"informer/reflector"}, // of the library, the program imports only these three
	{"informer/internal/attempt", "informer/scan"},
	{"informer/kube"},
}

// below returns the packages of the layers below that of a package.
func below(name string) (lower []string, ok bool) {
	for i, layer := range layers {
		if slices.Contains(layer, name) {
			return slices.Concat(layers[i+1:]...), true
		}
	}
	return nil, false
}

// maxFiles is the maximum number of source files of a package, without tests.
const maxFiles = 20

// imports lists what packages outside the layers may import: the rest of the informer library,
// the library for tests with localcluster, tests and benchmarks. Every package has to be in
// one of the two tables.
var imports = map[string][]string{
	"informer":                         {"informer/internal/attempt", "informer/kube", "informer/reflector", "informer/scan"},
	"informer/reconcile":               {"informer", "informer/internal/attempt"},
	"informer/internal/difference":     {},
	"informer/internal/script":         {},
	"informer/internal/simulation":     {},
	"informer/clientgo":                {"informer", "informer/clientgo/kubeconfig", "informer/clientgo/typed"},
	"informer/informertest":            {},
	"informer/zstd":                    {},
	"examples/leader":                  {"informer", "informer/clientgo/kubeconfig", "informer/clientgo/typed", "informer/reconcile"},
	"examples/metrics":                 {"informer", "informer/reconcile"},
	"examples/widget":                  {"informer", "informer/clientgo/kubeconfig", "informer/clientgo/typed", "informer/reconcile"},
	"examples/widget/scenarios":        {"informer/informertest"},
	"internal/testing/clustertest":     {"internal/testing/freeport", "localcluster/testcluster"},
	"internal/testing/freeport":        {},
	"internal/testing/logtest":         {},
	"internal/cli/manpages":            {"internal/cli"},
	"internal/testing/termtest":        {},
	"internal/testing/acceptance":      {},
	"internal/testing/compare":         {"internal/testing/watchread"},
	"internal/testing/conformance":     {"internal/testing/compare", "internal/testing/watchread"},
	"internal/testing/watchread":       {},
	"internal/testing/clocktest":       {},
	"internal/testing/archtest":        {},
	"internal/testing/faultproxy":      {},
	"internal/serve/h2/h2test":         {},
	"internal/testing/robustness":      {},
	"internal/testing/rights":          {},
	"internal/explain/story/storytest": {"internal/explain/api"},
	"internal/record/past/pasttest":    {"informer/kube", "informer/scan", "internal/record/history", "internal/timeline"},

	"informer/clientgo/kubeconfig": {"informer"},
	"informer/clientgo/typed":      {"informer"},

	"localcluster/testcluster": {},

	"internal/testing/fakeapi":             {"informer/informertest", "internal/testing/fakeapi/synthetic"},
	"internal/testing/fakeapi/behaviour":   {},
	"internal/testing/fakeapi/fakeprocess": {"internal/testing/fakeapi"},
	"internal/testing/fakeapi/synthetic":   {},

	"bench/fanout":         {"bench/lib/barewrites", "bench/lib/informers", "bench/lib/loadgen", "bench/lib/process", "bench/lib/streams", "bench/lib/report", "internal/testing/clustertest", "internal/testing/fakeapi", "internal/testing/fakeapi/fakeprocess", "internal/testing/fakeapi/synthetic"},
	"bench/lib/barewrites": {"bench/lib/process", "bench/lib/streams", "internal/testing/fakeapi"},
	"bench/lib/informers":  {"bench/lib/process", "internal/testing/fakeapi"},
	"bench/lib/process":    {},
	"bench/history":        {"bench/lib/loadgen", "bench/lib/process", "bench/lib/streams", "bench/lib/report", "informer/kube", "internal/testing/clustertest", "internal/testing/fakeapi", "internal/testing/fakeapi/fakeprocess", "internal/testing/fakeapi/synthetic", "internal/record/history"},
	"bench/page":           {"bench/lib/loadgen", "bench/lib/process", "bench/lib/report", "internal/testing/clustertest", "internal/testing/fakeapi", "internal/testing/fakeapi/fakeprocess"},
	"bench/shared":         {"bench/lib/process", "bench/lib/report", "bench/lib/streams", "internal/testing/clustertest"},
	"bench/lib/loadgen":    {"bench/lib/process", "internal/testing/clustertest", "internal/testing/fakeapi", "internal/testing/fakeapi/fakeprocess"},
	"bench/lib/streams":    {},
	"bench/lib/report":     {},

	"bench/informer":                           {"bench/informer/measure", "internal/testing/fakeapi", "internal/testing/fakeapi/fakeprocess"},
	"bench/informer/heap":                      {},
	"bench/informer/measure":                   {},
	"bench/informer/clients/clientgo":          {"bench/informer/measure"},
	"bench/informer/clients/baseline":          {"bench/informer/measure"},
	"bench/informer/ours":                      {"bench/informer/measure", "informer"},
	"bench/informer/clients/watchkeeper":       {"bench/informer/measure", "bench/informer/ours", "informer", "informer/zstd"},
	"bench/informer/clients/watchkeeper-typed": {"bench/informer/measure", "bench/informer/ours", "informer", "informer/clientgo/typed", "informer/zstd"},
}

// standardOnly lists the packages that may import only the standard library.
var standardOnly = []string{"informer", "informer/reconcile", "informer/internal/attempt", "informer/internal/difference", "informer/internal/script", "informer/internal/simulation", "informer/reflector", "informer/informertest", "informer/kube", "informer/scan", "internal/serve/webpage", "ui", "localcluster/testcluster", "bench/informer/measure"}

type pkg struct {
	ImportPath, Dir  string
	Imports, GoFiles []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Imports,GoFiles", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestFloors: in layers, the packages of a folder of internal stand together. So the folders
// are floors: a package imports only packages of its own folder and of those below it.
func TestFloors(t *testing.T) {
	var floors []string
	for _, layer := range layers {
		for _, name := range layer {
			parts := strings.Split(name, "/")
			if parts[0] != "internal" {
				continue
			}
			floor := parts[1]
			if len(floors) > 0 && floors[len(floors)-1] == floor {
				continue
			}
			if slices.Contains(floors, floor) {
				t.Errorf("%s is apart from the other packages of internal/%s", name, floor)
			}
			floors = append(floors, floor)
		}
	}
}

func TestImportsRunDownward(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, known := below(name)
		if !known {
			allowed, known = imports[name]
		}
		if len(p.GoFiles) > maxFiles {
			t.Errorf("%s has %d source files: split it", name, len(p.GoFiles))
		}
		if !known {
			t.Errorf("%s is not in the table of packages", name)
		}
		for _, imported := range p.Imports {
			if ours, ok := strings.CutPrefix(imported, module); ok {
				if !slices.Contains(allowed, ours) {
					t.Errorf("%s imports %s", name, ours)
				}
			} else if host, _, _ := strings.Cut(imported, "/"); slices.Contains(standardOnly, name) && strings.Contains(host, ".") {
				t.Errorf("%s imports %s, and may import only the standard library", name, imported)
			}
		}
	}
}

func TestOnePackageDoc(t *testing.T) {
	for _, p := range list(t) {
		docs := 0
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil {
				docs++
			}
			if len(file.Comments) == 0 || !strings.HasPrefix(file.Comments[0].Text(), "SPDX-FileCopyrightText:") {
				t.Errorf("%s/%s has no SPDX lines", p.ImportPath, name)
			}
		}
		if docs != 1 {
			t.Errorf("%s has %d package docs", p.ImportPath, docs)
		}
	}
}
