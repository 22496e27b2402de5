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
	{"internal/get"},
	{"internal/completion", "internal/livetable"},
	{"internal/livetable/feed", "internal/livetable/screen"},
	{"internal/livetable/table"},
	{"internal/connect", "internal/server"},
	{"internal/gateway"},
	{"internal/accessapi", "internal/delegated", "internal/historyapi", "internal/multiwatch", "internal/passthrough", "internal/rbacwatch", "internal/recorder", "internal/workbookapi", "internal/yamlapi"},
	{"internal/watchcache"},
	{"internal/access", "internal/audit", "internal/past", "internal/httpstream", "internal/selfreview"},
	{"internal/upstream", "internal/recording"},
	{"internal/request", "internal/fairness"},
	{"internal/findings", "internal/story"},
	{"internal/status", "internal/servingcert", "internal/api", "internal/webpage", "internal/workload", "ui"},
	{"internal/change", "internal/story/edges", "internal/h2", "internal/timeline", "internal/wire", "internal/history"},
	{"internal/sheet"},
	{"internal/history/delta", "internal/history/budget", "internal/history/failstop"},
	{"informer/reconcile"},
	{"informer"},
	{"informer/reflector"},
	{"informer/internal/attempt", "informer/internal/difference", "informer/internal/script", "informer/internal/simulation"},
	{"informer/scan"},
	{"informer/kube"},
	{"internal/spans", "internal/untranslated", "internal/words"},
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

// imports lists what packages outside the layers may import: the libraries around the
// informer, that for tests with localcluster, tests and benchmarks. Every package has to be in one of the two tables.
var imports = map[string][]string{
	"informer/clientgo":         {"informer", "informer/clientgo/kubeconfig", "informer/clientgo/typed"},
	"informer/informertest":     {},
	"informer/zstd":             {},
	"examples/leader":           {"informer", "informer/clientgo/kubeconfig", "informer/clientgo/typed", "informer/reconcile"},
	"examples/metrics":          {"informer", "informer/reconcile"},
	"examples/widget":           {"informer", "informer/clientgo/kubeconfig", "informer/clientgo/typed", "informer/reconcile"},
	"examples/widget/scenarios": {"informer/informertest"},
	"internal/clustertest":      {"internal/freeport", "localcluster/testcluster"},
	"internal/freeport":         {},
	"internal/logtest":          {},
	"internal/manpages":         {"internal/cli"},
	"internal/termtest":         {},
	"internal/acceptance":       {},
	"internal/compare":          {"internal/watchread"},
	"internal/conformance":      {"internal/compare", "internal/watchread"},
	"internal/watchread":        {},
	"internal/clocktest":        {},
	"internal/archtest":         {},
	"internal/faultproxy":       {},
	"internal/h2/h2test":        {},
	"internal/robustness":       {},
	"internal/rights":           {},
	"internal/story/storytest":  {"internal/api"},
	"internal/past/pasttest":    {"informer/kube", "informer/scan", "internal/history", "internal/timeline"},

	"informer/clientgo/kubeconfig": {"informer"},
	"informer/clientgo/typed":      {"informer"},

	"localcluster/testcluster": {},

	"internal/fakeapi":             {"informer/informertest", "internal/fakeapi/synthetic"},
	"internal/fakeapi/behaviour":   {},
	"internal/fakeapi/fakeprocess": {"internal/fakeapi"},
	"internal/fakeapi/synthetic":   {},

	"bench/fanout":         {"bench/lib/barewrites", "bench/lib/informers", "bench/lib/loadgen", "bench/lib/process", "bench/lib/streams", "bench/lib/report", "internal/clustertest", "internal/fakeapi", "internal/fakeapi/fakeprocess", "internal/fakeapi/synthetic"},
	"bench/lib/barewrites": {"bench/lib/process", "bench/lib/streams", "internal/fakeapi"},
	"bench/lib/informers":  {"bench/lib/process", "internal/fakeapi"},
	"bench/lib/process":    {},
	"bench/history":        {"bench/lib/loadgen", "bench/lib/process", "bench/lib/streams", "bench/lib/report", "informer/kube", "internal/clustertest", "internal/fakeapi", "internal/fakeapi/fakeprocess", "internal/fakeapi/synthetic", "internal/history"},
	"bench/page":           {"bench/lib/loadgen", "bench/lib/process", "bench/lib/report", "internal/clustertest", "internal/fakeapi", "internal/fakeapi/fakeprocess"},
	"bench/shared":         {"bench/lib/process", "bench/lib/report", "bench/lib/streams", "internal/clustertest"},
	"bench/lib/loadgen":    {"bench/lib/process", "internal/clustertest", "internal/fakeapi", "internal/fakeapi/fakeprocess"},
	"bench/lib/streams":    {},
	"bench/lib/report":     {},

	"bench/informer":                           {"bench/informer/measure", "internal/fakeapi", "internal/fakeapi/fakeprocess"},
	"bench/informer/heap":                      {},
	"bench/informer/measure":                   {},
	"bench/informer/clients/clientgo":          {"bench/informer/measure"},
	"bench/informer/clients/baseline":          {"bench/informer/measure"},
	"bench/informer/ours":                      {"bench/informer/measure", "informer"},
	"bench/informer/clients/watchkeeper":       {"bench/informer/measure", "bench/informer/ours", "informer", "informer/zstd"},
	"bench/informer/clients/watchkeeper-typed": {"bench/informer/measure", "bench/informer/ours", "informer", "informer/clientgo/typed", "informer/zstd"},
}

// standardOnly lists the packages that may import only the standard library.
var standardOnly = []string{"informer", "informer/reconcile", "informer/internal/attempt", "informer/internal/difference", "informer/internal/script", "informer/internal/simulation", "informer/reflector", "informer/informertest", "informer/kube", "informer/scan", "internal/webpage", "ui", "localcluster/testcluster", "bench/informer/measure"}

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
