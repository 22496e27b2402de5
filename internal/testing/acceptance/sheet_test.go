// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// sheetManifest has texts that a spreadsheet could take for formulas, and a Deployment
// without Pods' limits.
const sheetManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {note: '=HYPERLINK("http://evil.example","a")'}}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27"}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, annotations: {note: "+1"}}
spec: {replicas: 2, selector: {matchLabels: {app: api}}, template: {metadata: {labels: {app: api}}, spec: {containers: [{name: api, image: "api:1"}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: texts}
data: {a: "=1+1", b: "-2", c: "@SUM(A1)", d: "\t=1", e: "007", f: "1e5", g: "TRUE", h: "=cmd|' /C calc'!A0", i: "two\nlines ", j: "\r\n=1", k: "#REF!"}
`

const sheetColumns = `spec.replicas,metadata.annotations.note,spec.template.spec.containers[?(@.name=="web")].image,spec.template.spec.containers[0].resources.limits.cpu,metadata.labels.tier,status.observedGeneration`

// runSheet runs "watchkeeper sheet".
func runSheet(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cluster.Program(), append([]string{"sheet"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// office writes cells in LibreOffice, and returns the types and formulas that the cells of
// the file had before.
func office(t *testing.T, file string, cells ...[3]string) (opened map[string]map[string][2]string) {
	t.Helper()
	input, err := json.Marshal(append([][3]string{}, cells...))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "testdata/sheet/edit.py", file, filepath.Join(t.TempDir(), "profile"))
	cmd.Stdin, cmd.WaitDelay = bytes.NewReader(input), 10*time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("LibreOffice: %v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &opened); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return opened
}

func replicas(t *testing.T, ns, name string) int32 {
	t.Helper()
	d, err := api.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *d.Spec.Replicas
}

// TestSheet: a workbook that was edited and saved by LibreOffice scales a Deployment. Texts of
// the cluster are no formulas there, and are the same after LibreOffice has saved them.
func TestSheet(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	apply(t, sheetManifest, ns)
	file := filepath.Join(t.TempDir(), "shop.xlsx")
	server := "--server=" + gw.URL
	if _, errs, code := runSheet(t, file, "deployments", "-n", ns, server, "--columns", sheetColumns); code != 0 || !strings.Contains(errs, "2 deployments") {
		t.Fatalf("%d %s", code, errs)
	}
	const texts = "data.a,data.b,data.c,data.d,data.e,data.f,data.g,data.h,data.i,data.j,data.k,data"
	if _, errs, code := runSheet(t, file, "cm", "-n", ns, server, "--columns", texts); code != 0 || !strings.Contains(errs, "2 configmaps") {
		t.Fatalf("%d %s", code, errs)
	}
	before := readBook(t, file)
	opened := office(t, file) // opens and saves it
	for name, cells := range opened {
		for cell, is := range cells {
			if is[0] == "FORMULA" {
				t.Errorf("%s %s is the formula %s in LibreOffice", name, cell, is[1])
			}
		}
	}
	if got := opened["deployments"]["3,2"]; got != [2]string{"TEXT", `'=HYPERLINK("http://evil.example","a")`} && got[0] != "TEXT" {
		t.Errorf("the annotation is %v", got)
	}
	if diff := cmp.Diff(before, readBook(t, file)); diff != "" {
		t.Errorf("LibreOffice changed the workbook:\n%s", diff)
	}
	if out, errs, code := runSheet(t, file, "--apply", "--yes", server); code != 0 || out != "" || !strings.Contains(errs, "changes anything") {
		t.Fatalf("%d %s %s", code, out, errs)
	}

	office(t, file,
		[3]string{"deployments", "J1", "wanted"}, [3]string{"deployments", "J3", "2"},
		[3]string{"deployments", "C3", "=IFS(J3>1;J3*2;TRUE();1)"},
		[3]string{"deployments", "E3", "nginx:1.28"}, [3]string{"deployments", "F2", "0.5"},
		[3]string{"deployments", "G2", "5"}, [3]string{"deployments", "H2", "9"},
		[3]string{"deployments", "C5", "=SUM(C2:C3)"})
	out, errs, code := runSheet(t, file, "--apply", server)
	plan := fmt.Sprintf(`deployments %[1]s/api  spec.template.spec.containers[0].resources.limits.cpu: nothing → 0.5
deployments %[1]s/api  metadata.labels.tier: nothing → "5"
`, ns)
	want := plan + fmt.Sprintf(`deployments %[1]s/web  spec.template.spec.containers[?(@.name=="web")].image: "nginx:1.27" → "nginx:1.28"
`, ns)
	refused := fmt.Sprintf("not applied: deployments %s/api  status.observedGeneration (H2): the status is written by controllers\n", ns)
	function := fmt.Sprintf("not applied: deployments %s/web  spec.replicas (C3): the function TRUE is not supported\n", ns)
	if code != 1 || out != want || !strings.Contains(errs, refused) || !strings.Contains(errs, function) || !strings.Contains(errs, "add --yes") {
		t.Fatalf("%d\n%s\nwant\n%s\n%s", code, out, want, errs)
	}
	if n := replicas(t, ns, "web"); n != 1 {
		t.Fatalf("%d replicas without --yes", n)
	}

	office(t, file, [3]string{"deployments", "C3", "=IF(J3>1;J3*2;1)"}, [3]string{"deployments", "H2", ""})
	out, errs, code = runSheet(t, file, "--apply", "--yes", server)
	if scale := fmt.Sprintf("deployments %s/web  spec.replicas: 1 → 4\n", ns); code != 1 || !strings.Contains(out, scale) || !strings.Contains(errs, "4 cells are applied, and 1 is not") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	if n := replicas(t, ns, "web"); n != 4 {
		t.Errorf("%d replicas, want 4", n)
	}
	d, err := api.AppsV1().Deployments(ns).Get(t.Context(), "api", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	managed := false
	for _, m := range d.ManagedFields {
		managed = managed || m.Manager == sheet.FieldManager
	}
	if cpu := d.Spec.Template.Spec.Containers[0].Resources.Limits.Cpu().String(); cpu != "500m" || d.Labels["tier"] != "5" || !managed {
		t.Errorf("the limit is %s, the labels %v, managed %t", cpu, d.Labels, managed)
	}
	// The formulas and notes are there, and there is nothing more to apply but what is
	// read-only.
	after := readBook(t, file)
	var free []string
	for _, c := range after.Tabs[0].Cells {
		free = append(free, c.Cell+c.Formula)
	}
	if want := []string{"J1", "H2", "C3=IF(J3>1,J3*2,1)", "J3", "C5=SUM(C2:C3)"}; !cmp.Equal(want, free) {
		t.Errorf("the cells are %q, want %q", free, want)
	}
	if v := string(after.Tabs[0].Rows[0].Values[3]); v != `"500m"` {
		t.Errorf("the limit is %s in the file", v)
	}
	if _, errs, code := runSheet(t, file, "--discard", server); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
	if out, errs, code := runSheet(t, file, "--apply", server); code != 0 || out != "" {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// readBook reads a workbook.
func readBook(t *testing.T, file string) *sheet.Workbook {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	book, problems, err := sheet.Read(sheet.NewBudget(t.Context(), 1<<30), data)
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	return book
}

// setCell writes a cell of the worksheet of Deployments.
func setCell(t *testing.T, file, cell string, value any) {
	t.Helper()
	f, err := excelize.OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetCellValue("deployments", cell, value); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
}

// TestSheetRefusals: an object that was changed meanwhile is not changed again, nor one that
// was made again, nor one that the user may not change; others are.
func TestSheetRefusals(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	ns := namespace(t)
	apply(t, sheetManifest, ns)
	apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s-jane}]
`, ns), ns)
	file := filepath.Join(t.TempDir(), "shop.xlsx")
	direct := []string{"--kubeconfig", cluster.Kubeconfig(), "--server", cluster.Config.Host} // the API server, without a gateway
	sheetOf := func(args ...string) (out, errs string, code int) {
		t.Helper()
		return runSheet(t, append(append([]string{file}, args...), direct...)...)
	}
	if _, errs, code := sheetOf("deploy", "-n", ns, "--columns", "spec.replicas,metadata.labels.x"); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	setCell(t, file, "C2", 7) // api
	setCell(t, file, "C3", 8) // web
	out, errs, code := sheetOf("--apply", "--yes", "--as", ns+"-jane")
	if code != 1 || out != "" || strings.Count(errs, "cannot patch resource") != 2 || !strings.Contains(errs, "0 cells are applied, and 2 are not") {
		t.Errorf("jane: %d %s\n%s", code, out, errs)
	}
	kubectl(t, "scale", "-n", ns, "deployment/api", "--replicas=3")
	out, errs, code = sheetOf("--apply", "--yes")
	if code != 1 || out != fmt.Sprintf("deployments %s/web  spec.replicas: 1 → 8\n", ns) || !strings.Contains(errs, "api  spec.replicas (C2): it was changed meanwhile: it was 2 and is 3 now") || !strings.Contains(errs, "1 cell is applied, and 1 is not") {
		t.Errorf("%d %s\n%s", code, out, errs)
	}
	if a, w := replicas(t, ns, "api"), replicas(t, ns, "web"); a != 3 || w != 8 {
		t.Errorf("%d and %d replicas", a, w)
	}
	setCell(t, file, "C3", 9)
	kubectl(t, "delete", "-n", ns, "deployment", "web", "--wait")
	if _, errs, code := sheetOf("--apply", "--yes"); code != 1 || !strings.Contains(errs, "web  spec.replicas (C3): it was deleted") {
		t.Errorf("%d %s", code, errs)
	}
	apply(t, sheetManifest, ns)
	if _, errs, code := sheetOf("--apply", "--yes"); code != 1 || !strings.Contains(errs, "another object has its name now") {
		t.Errorf("%d %s", code, errs)
	}
	if n := replicas(t, ns, "web"); n != 1 {
		t.Errorf("the new Deployment has %d replicas", n)
	}
	if _, errs, code := sheetOf("--discard"); code != 0 || strings.Contains(errs, "kept") {
		t.Errorf("%d %s", code, errs)
	}
	if out, errs, code := sheetOf("--apply", "--yes"); code != 0 || out != "" {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// TestSheetOverHTTP: as=xlsx is a workbook, of now and of the past, that sheet --apply reads.
func TestSheetOverHTTP(t *testing.T) {
	inStage(t, quiet)
	ns := namespace(t)
	apply(t, sheetManifest, ns)
	resp, err := http.Get(gw.URL + "/apis/apps/v1/namespaces/" + ns + "/deployments?as=xlsx&fields=spec.replicas")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s %s %v", resp.Status, data, err)
	}
	file := filepath.Join(t.TempDir(), "deployments.xlsx")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	setCell(t, file, "C3", 3)
	if out, errs, code := runSheet(t, file, "--apply", "--yes", "--server="+gw.URL); code != 0 || out != fmt.Sprintf("deployments %s/web  spec.replicas: 1 → 3\n", ns) {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if n := replicas(t, ns, "web"); n != 3 {
		t.Errorf("%d replicas", n)
	}
}
