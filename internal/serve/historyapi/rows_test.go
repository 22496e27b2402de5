// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/serve/historyapi"
)

type rowDifference struct {
	Kind, APIVersion string
	From, To         api.Moment
	Columns          []string
	Repeated         string
	Rows             []json.RawMessage
	Deleted          [][2]string
}

func TestDiffRows(t *testing.T) {
	f := newFixture(t)
	const fields = "&as=rows&fields=spec.replicas,spec.template.spec.containers[0].image"
	const web120 = `["default","web","uid-of-web","120",5,"nginx:1.27"]`
	for _, tc := range []struct {
		path string
		want []string
	}{
		{deploymentDiff + "?from=rv:100&to=rv:120" + fields, []string{web120}},
		{deploymentDiff + "?from=rv:120&to=rv:100" + fields, []string{`["default","web","uid-of-web","90",3,"nginx:1.25"]`}},
		{deploymentDiff + "?from=rv:120&to=rv:120" + fields, nil},
		{deploymentDiff + "?from=rv:130&to=rv:120" + fields, []string{`["default","old","uid-of-old","91",1,"old:1"]`}},
		{deploymentDiff + "?from=rv:120&to=rv:135" + fields, []string{`["kube-system","dns","uid-of-dns","135",2,"dns:1"]`, "default/old deleted"}},
		{"/diff/apis/apps/v1/namespaces/default/deployments?from=rv:120&to=rv:140" + fields, []string{"default/old deleted", "default/web deleted"}},
		{deploymentDiff + "?from=rv:140&to=rv:200" + fields, []string{`["default","web","another","165",2,"nginx:1.27"]`}},
		{deploymentDiff + "?from=" + f.when(20.5) + "&to=" + f.when(10) + fields, []string{`["default","web","uid-of-web","110",5,"nginx:1.25"]`}},
		{"/diff/api/v1/nodes?from=rv:101&to=rv:150&as=rows&fields=status.conditions[%3F(@.type==%22Ready%22)].status", []string{`[null,"n1","uid-of-n1","150","Unknown"]`}},
	} {
		w := f.get(tc.path)
		d := decoded[rowDifference](t, w)
		got := []string(nil)
		for _, row := range d.Rows {
			got = append(got, string(row))
		}
		for _, key := range d.Deleted {
			got = append(got, key[0]+"/"+key[1]+" deleted")
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || d.Kind != "RowDifference" || d.APIVersion != "watchkeeper/v1" || len(d.Columns) < 5 {
			t.Errorf("%s: %+v %s", tc.path, d, diff)
		}
		if strings.Contains(tc.path, "to=rv:") && !strings.Contains(tc.path, "to=rv:"+d.To.ResourceVersion) {
			t.Errorf("%s: to %+v", tc.path, d.To)
		}
	}
	// Rows that leave out what they repeat: nothing, in a part of the keys with one object.
	d := decoded[rowDifference](t, f.get(deploymentDiff+"?from=rv:100&to=rv:120&repeated=omit"+fields))
	const changes = `[0,"default",0,"web",0,"uid-of-web",0,"120",0,5,0,"nginx:1.27"]`
	if d.Repeated != "omit" || len(d.Rows) != 1 || string(d.Rows[0]) != changes {
		t.Errorf("with repeated=omit: %+v", d)
	}
	for path, want := range map[string]string{
		deploymentDiff + "?from=rv:100&repeated=omit":                                "needs fields",
		deploymentDiff + "?from=rv:100&repeated=x" + fields:                          "has to be omit",
		deploymentDiff + "?from=rv:100&as=rows":                                      "needs fields",
		deploymentDiff + "?from=rv:100&fields=spec":                                  "add as=rows",
		deploymentDiff + "?from=rv:100&fields=spec&as=x":                             "has to be rows",
		deploymentDiff + "?from=rv:100&labelSelector=a" + fields:                     "labelSelector",
		deploymentDiff + "?from=rv:100&limit=5" + fields:                             "limit",
		"/diff/apis/apps/v1/namespaces/default/deployments/web?from=rv:100" + fields: "only a list",
		deploymentDiff + "?from=rv:100&as=rows&fields=a..b":                          "at offset 2",
	} {
		if s, _ := f.refused(path); s.Code != http.StatusBadRequest || !strings.Contains(s.Message, want) {
			t.Errorf("%s: %d %s", path, s.Code, s.Message)
		}
	}
	if s, _ := f.refused(deploymentDiff + "?from=rv:50" + fields); s.Code != http.StatusGone {
		t.Errorf("from before the history: %d %s", s.Code, s.Message)
	}
	if s, _ := f.refused("/diff/api/v1/secrets?from=rv:100" + fields); s.Code != http.StatusForbidden {
		t.Errorf("Secrets: %d %s", s.Code, s.Message)
	}
	historyapi.SetMaxRowEvents(t, 3)
	if s, _ := f.refused(deploymentDiff + "?from=rv:100&to=rv:200" + fields); s.Code != http.StatusBadRequest || !strings.Contains(s.Message, "list the state at to") {
		t.Errorf("too many changes: %d %s", s.Code, s.Message)
	}
}
