// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

const acceptTable = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"

func ask(t *testing.T, s *httptest.Server, query string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/pods?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", acceptTable)
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestTables(t *testing.T) {
	server := fakeapi.New(fakeapi.Options{Population: fakeapi.Population{Pods: pods}})
	s := httptest.NewServer(server)
	defer s.Close()

	check := func(what string, table metav1.Table, rows int, rv string, columns bool) {
		t.Helper()
		if table.Kind != "Table" || len(table.Rows) != rows || table.ResourceVersion != rv || (len(table.ColumnDefinitions) > 0) != columns {
			t.Fatalf("%s: %d rows at %q, %d columns", what, len(table.Rows), table.ResourceVersion, len(table.ColumnDefinitions))
		}
		for _, row := range table.Rows {
			var p corev1.Pod
			if err := json.Unmarshal(row.Object.Raw, &p); err != nil {
				t.Fatal(err)
			}
			if p.Kind != "Pod" || row.Cells[0] != p.Name || len(p.Spec.Containers) == 0 && p.Name != "" {
				t.Errorf("%s: a row of %v and %s %q", what, row.Cells, p.Kind, p.Name)
			}
			if rows == 1 && p.ResourceVersion != rv {
				t.Errorf("%s: the object is at %s, its Table at %s", what, p.ResourceVersion, rv)
			}
		}
	}
	var list metav1.Table
	if err := json.NewDecoder(ask(t, s, "includeObject=Object").Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	check("list", list, pods, strconv.Itoa(after), true)

	watch := json.NewDecoder(ask(t, s, fmt.Sprintf("watch=1&includeObject=Object&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion=%d", after)).Body)
	server.Change(2)
	for i, want := range []string{"MODIFIED", "MODIFIED", "BOOKMARK"} {
		var e struct {
			Type   string
			Object metav1.Table
		}
		if err := watch.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if e.Type != want {
			t.Fatalf("event %d: %s, want %s", i, e.Type, want)
		}
		check(want, e.Object, 1, strconv.Itoa(after+min(i+1, 2)), i == 0)
	}

	// Rows have metadata by default.
	for query, want := range map[string]string{
		"limit=1": `"object":{"kind":"PartialObjectMetadata"`, "limit=1&includeObject=Metadata": `"object":{"kind":"PartialObjectMetadata"`,
		"limit=1&includeObject=None": `"object":null`,
	} {
		body, err := io.ReadAll(ask(t, s, query).Body)
		if err != nil || !strings.HasPrefix(string(body), `{"kind":"Table"`) || strings.Count(string(body), want) != 1 {
			t.Errorf("%s: %.400s, %v", query, body, err)
		}
	}
}
