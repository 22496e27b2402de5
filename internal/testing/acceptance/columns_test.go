// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const prints = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prints.life.example.com}
spec:
  group: life.example.com
  scope: Cluster
  names: {plural: prints, singular: print, kind: Print}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    additionalPrinterColumns:
    - {name: Made, type: date, jsonPath: MADE, description: when it was made}
    - {name: Sold, type: date, jsonPath: .spec.sold}
    - {name: Born, type: date, jsonPath: .metadata.creationTimestamp, description: when it came here}
    - {name: Every, type: string, jsonPath: .spec.every, description: how often}
    - {name: Age, type: string, jsonPath: .spec.age, description: of the one who made it}
    - {name: Size, type: integer, jsonPath: .spec.size}
`

// onePrint returns the manifest of a Print.
func onePrint(name, spec string) string {
	return fmt.Sprintf("---\n{apiVersion: life.example.com/v1, kind: Print, metadata: {name: %s}, spec: %s}\n", name, spec)
}

var (
	seconds  = regexp.MustCompile(`"(?:\d+m)?\d+s"`)
	tableRVs = regexp.MustCompile(`"metadata":\{"resourceVersion":"\d+"\}`)
)

// TestColumns prints a custom resource with date columns, whose JSON paths a Table
// does not name, and then changes a path, which leaves the column definitions of
// the Table as they are.
func TestColumns(t *testing.T) {
	t.Cleanup(func() {
		_ = cluster.Kubectl(context.Background(), "delete", "crd", "prints.life.example.com", "--ignore-not-found").Run()
	})
	apply(t, strings.ReplaceAll(prints, "MADE", ".spec.made"))
	established(t, "prints.life.example.com")
	// Dates whose printed age does not change for a while.
	ago := func(d time.Duration) string { return time.Now().Add(-d - 20*time.Second).UTC().Format(time.RFC3339) }
	apply(t, onePrint("full", fmt.Sprintf("{made: %q, sold: %q, every: 5m, age: 7m, size: 3}", ago(9*time.Hour), ago(30*time.Hour)))+
		onePrint("young", fmt.Sprintf("{made: %q, every: 3d4h}", ago(0)))+
		onePrint("future", fmt.Sprintf("{made: %q}", ago(-90*time.Minute)))+
		onePrint("bad", "{made: yesterday, sold: 5, every: 2 (5m ago)}")+
		onePrint("empty", "{}"))
	client, up := direct(t)
	ask := func(client *http.Client, url, accept string) string {
		t.Helper()
		a, err := ask(t.Context(), client, url, accept)
		if err != nil {
			t.Error(err)
		}
		text := seconds.ReplaceAllString(a.body, `"some s"`)
		return fmt.Sprintln(a.code, a.contentType) + tableRVs.ReplaceAllString(text, `"metadata":{}`)
	}
	const path = "/apis/life.example.com/v1/prints"
	agrees := func(when, cell, version, tail string) {
		accept := "application/json;as=Table;g=meta.k8s.io;v=" + version
		for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			var want string
			var wg sync.WaitGroup
			wg.Go(func() { want = ask(client, up+path+tail, accept) })
			got := ask(http.DefaultClient, gw.URL+path+tail, accept)
			wg.Wait()
			if want == got && strings.Contains(got, cell) {
				return
			}
			if time.Now().After(end) {
				t.Errorf("%s: %s:\n%s\nwant\n%s", when, tail, got, want)
				return
			}
		}
	}
	same := func(when, cell string) {
		t.Helper()
		var wg sync.WaitGroup
		for _, version := range []string{"v1", "v1beta1"} {
			for _, tail := range []string{
				"?resourceVersion=0", "?resourceVersion=0&includeObject=Object", "?resourceVersion=0&includeObject=None", "/full?resourceVersion=0",
				"?resourceVersion=0&watch=1&timeoutSeconds=1",
			} {
				wg.Go(func() { agrees(when, cell, version, tail) })
			}
		}
		wg.Wait()
		cached(t, gw, path+"?resourceVersion=0")
		before := servedLists(t, gw)
		if ask(http.DefaultClient, gw.URL+path+"?resourceVersion=0", "application/json;as=Table;g=meta.k8s.io;v=v1"); servedLists(t, gw) == before {
			t.Errorf("%s: a Table is not from the cache", when)
		}
	}
	same("at first", `"cells":["full","9h","30h",`)
	apply(t, strings.ReplaceAll(prints, "MADE", ".spec.sold"))
	same("changed", `"cells":["full","30h","30h",`)
}
