// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package screen_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/screen"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

const serverTable = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10"},
"columnDefinitions":[{"name":"Name","type":"string","format":"name"},{"name":"Ready","type":"string"},{"name":"Count","type":"integer"},{"name":"Age","type":"string"},{"name":"IP","type":"string","priority":1},{"name":"Note","type":"string"}],
"rows":[
{"cells":["a","1/1",3,"CREATED","10.0.0.1",null],"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"2","creationTimestamp":"TIME","labels":{"app":"web","example.com/tier":"front"}}}},
{"cells":["long-name-of-a-pod","0/1",1234567,"CREATED","<none>","two\nlines and \u001b[2J"],"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"long-name-of-a-pod","namespace":"ns","resourceVersion":"3","creationTimestamp":"TIME"}}},
{"cells":["p",true,1.5,"<unknown>","10.0.0.1","a \"quoted\" \u003clong text\u003e"],"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"other","resourceVersion":"4","labels":{"app":"db"}}}}]}`

// TestKubectl: the last state of a table is, to the byte, what kubectl's printer writes.
func TestKubectl(t *testing.T) {
	created := time.Now().Add(-90 * time.Minute).UTC() // far from where its text changes
	text := strings.NewReplacer("TIME", created.Format(time.RFC3339), "CREATED", "90m").Replace(serverTable)
	for name, test := range map[string]struct {
		columns   feed.Columns
		noHeaders bool
		options   printers.PrintOptions
	}{
		"plain":      {},
		"wide":       {columns: feed.Columns{Wide: true}, options: printers.PrintOptions{Wide: true}},
		"all":        {columns: feed.Columns{Namespace: true}, options: printers.PrintOptions{WithNamespace: true}},
		"labels":     {columns: feed.Columns{ShowLabels: true, LabelColumns: []string{"app", "example.com/tier", "none"}}, options: printers.PrintOptions{ShowLabels: true, ColumnLabels: []string{"app", "example.com/tier", "none"}}},
		"no headers": {noHeaders: true, options: printers.PrintOptions{NoHeaders: true}},
		"kind":       {columns: feed.Columns{NamePrefix: "pod/", Namespace: true}, options: printers.PrintOptions{WithKind: true, WithNamespace: true, Kind: schema.GroupKind{Kind: "Pod"}}},
	} {
		t.Run(name, func(t *testing.T) {
			of := &table.Table{}
			fill(t, of, text, test.columns)
			s := &screen.Screen{NoHeaders: test.noHeaders, Sections: []*screen.Section{{Table: of}}}
			got := strings.Join(s.Final(0, time.Now()), "\n") + "\n"
			if d := cmp.Diff(kubectl(t, text, test.options), got); d != "" {
				t.Errorf("-kubectl +table\n%s", d)
			}
		})
	}
}

func fill(t *testing.T, of *table.Table, text string, c feed.Columns) {
	t.Helper()
	list, err := scan.ParseList(text, "Pod")
	if err != nil {
		t.Fatal(err)
	}
	p := feed.NewPrinter(kube.Resource{Version: "v1", Name: "pods"}, c, nil)
	var rows []table.Data
	for _, o := range list.Items {
		d, err := p.Data(o)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, d)
	}
	columns, err := p.Columns(list.Columns)
	if err != nil {
		t.Fatal(err)
	}
	of.Replace(columns, rows, time.Now())
}

func kubectl(t *testing.T, text string, options printers.PrintOptions) string {
	t.Helper()
	var of metav1.Table
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		t.Fatal(err)
	}
	for i := range of.Rows {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(of.Rows[i].Object.Raw, o); err != nil {
			t.Fatal(err)
		}
		of.Rows[i].Object = runtime.RawExtension{Object: o}
		for j, c := range of.Rows[i].Cells {
			if n, ok := c.(float64); ok && n == float64(int64(n)) {
				of.Rows[i].Cells[j] = int64(n) // as kubectl's decoder does
			}
		}
	}
	var b bytes.Buffer
	if err := printers.NewTablePrinter(options).PrintObj(&of, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
