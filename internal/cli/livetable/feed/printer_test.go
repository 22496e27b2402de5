// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
)

var now = time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)

func ago(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }

// row prints an object with one column, now and three hours later.
func row(t *testing.T, r kube.Resource, definition, cell, object string) string {
	t.Helper()
	text := fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"10"},"columnDefinitions":[%s],"rows":[{"cells":[%s],"object":%s}]}`, definition, cell, object)
	list, err := scan.ParseList(text, "")
	if err != nil {
		t.Fatal(err)
	}
	p := feed.NewPrinter(r, feed.Columns{Wide: true}, nil)
	p.At(func() time.Time { return now })
	d, err := p.Data(list.Items[0])
	if err != nil {
		t.Fatal(err)
	}
	return d.Cells[0].At(now) + ", " + d.Cells[0].At(now.Add(3*time.Hour))
}

// TestAges: ages go on from the time that they are counted from, and nothing else does.
func TestAges(t *testing.T) {
	pods := kube.Resource{Version: "v1", Name: "pods"}
	events := kube.Resource{Version: "v1", Name: "events"}
	jobs := kube.Resource{Group: "batch", Version: "v1", Name: "jobs"}
	cronjobs := kube.Resource{Group: "batch", Version: "v1", Name: "cronjobs"}
	widgets := kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}
	column := func(name, typ, description string) string {
		return fmt.Sprintf(`{"name":%q,"type":%q,"description":%q}`, name, typ, description)
	}
	typed := func(rest string) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"2","creationTimestamp":%q}%s}`, ago(2*time.Hour), rest)
	}
	custom := func(rest string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"2","creationTimestamp":%q}%s}`, ago(2*time.Hour), rest)
	}
	restarts := func(at ...time.Duration) string {
		var all []string
		for _, d := range at {
			all = append(all, fmt.Sprintf(`{"lastState":{"terminated":{"finishedAt":%q}}}`, ago(d)))
		}
		return `,"status":{"containerStatuses":[` + strings.Join(all, ",") + `]}`
	}
	for name, test := range map[string]struct {
		resource                 kube.Resource
		definition, cell, object string
		want                     string
	}{
		"age":                                 {pods, column("Age", "string", ""), `"119m"`, typed(""), "120m, 5h"},
		"age of a skewed clock":               {pods, column("Age", "string", ""), `"100m"`, typed(""), "120m, 5h"},
		"name that looks like an age":         {pods, column("Name", "string", ""), `"5m"`, typed(""), "5m, 5m"},
		"status":                              {pods, column("Status", "string", ""), `"Running"`, typed(""), "Running, Running"},
		"no restart":                          {pods, column("Restarts", "string", ""), `"0"`, typed(""), "0, 0"},
		"restarts":                            {pods, column("Restarts", "string", ""), `"3 (5m20s ago)"`, typed(restarts(time.Hour, 5*time.Minute+20*time.Second)), "3 (5m20s ago), 3 (3h5m ago)"},
		"restarts of another time":            {pods, column("Restarts", "string", ""), `"3 (5m ago)"`, typed(restarts(time.Hour)), "3 (5m ago), 3 (5m ago)"},
		"last seen":                           {events, column("Last Seen", "string", ""), `"7s"`, typed(fmt.Sprintf(`,"lastTimestamp":%q`, ago(7*time.Second))), "7s, 3h"},
		"last seen in a series":               {events, column("Last Seen", "string", ""), `"7s"`, typed(fmt.Sprintf(`,"lastTimestamp":null,"series":{"lastObservedTime":%q}`, ago(7*time.Second))), "7s, 3h"},
		"job that runs":                       {jobs, column("Duration", "string", ""), `"60s"`, typed(fmt.Sprintf(`,"status":{"startTime":%q}`, ago(time.Minute))), "60s, 3h1m"},
		"job that has ended":                  {jobs, column("Duration", "string", ""), `"60s"`, typed(fmt.Sprintf(`,"status":{"startTime":%q,"completionTime":%q}`, ago(time.Minute), ago(0))), "60s, 60s"},
		"never scheduled":                     {cronjobs, column("Last Schedule", "string", ""), `"<none>"`, typed(""), "<none>, <none>"},
		"large integers":                      {widgets, column("Sizes", "string", ""), `[9007199254740993]`, custom(""), "[9007199254740993], [9007199254740993]"},
		"large integer":                       {widgets, column("Size", "integer", ""), `9007199254740993`, custom(""), "9007199254740993, 9007199254740993"},
		"custom date":                         {widgets, column("Renewed", "date", "Custom resource definition column (in JSONPath format): .status.renewed"), `"10m"`, custom(fmt.Sprintf(`,"status":{"renewed":%q}`, ago(10*time.Minute))), "10m, 3h10m"},
		"custom date of the creation":         {widgets, column("Age", "date", "when it was made"), `"120m"`, custom(""), "120m, 5h"},
		"custom date of something else":       {widgets, column("Renewed", "date", "when it was renewed"), `"10m"`, custom(""), "10m, 10m"},
		"custom column with the name of ages": {widgets, column("Age", "string", "Custom resource definition column (in JSONPath format): .spec.age"), `"10m"`, custom(""), "10m, 10m"},
	} {
		if got := row(t, test.resource, test.definition, test.cell, test.object); got != test.want {
			t.Errorf("%s: %s, not %s", name, got, test.want)
		}
	}
}

// TestWithoutTables: a server without Tables sends objects only.
func TestWithoutTables(t *testing.T) {
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"2","creationTimestamp":%q}}`, ago(time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	p := feed.NewPrinter(kube.Resource{Version: "v1", Name: "pods"}, feed.Columns{Namespace: true}, nil)
	d, err := p.Data(o)
	if err != nil {
		t.Fatal(err)
	}
	var cells []string
	for _, c := range d.Cells {
		cells = append(cells, c.At(now))
	}
	if diff := cmp.Diff([]string{"ns", "a", "60s"}, cells); diff != "" {
		t.Error(diff)
	}
}

func TestSortBy(t *testing.T) {
	for expression, want := range map[string]string{
		".metadata.name":           "a b c d",
		"{.spec.n}":                "d c b a",
		"spec.n":                   "d c b a",
		".spec.quantity":           "d b a c",
		".metadata.labels['text']": "d c a b",
		"{.spec.list[0]}":          "a b d c",
		".none":                    "a b c d",
	} {
		key, less, err := feed.SortBy(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		keys := map[string]any{}
		for name, spec := range map[string]string{
			"a": `"n":10,"quantity":"1Gi"`, "b": `"n":9.5,"quantity":"500Mi"`, "c": `"n":1,"quantity":"2Gi","list":["x"]`, "d": `"quantity":"5","list":["1"]`,
		} {
			label := map[string]string{"a": `"text":"x"`, "b": `"text":"y"`, "c": `"text":"10"`, "d": `"text":"9"`}[name]
			o, err := scan.ParseObject(fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"2","labels":{%s}},"spec":{%s}}`, name, label, spec))
			if err != nil {
				t.Fatal(err)
			}
			keys[name] = key(o)
		}
		names := strings.Fields("a b c d")
		for range names { // by insertion, so that equal ones keep their order
			for i := 1; i < len(names); i++ {
				if less(keys[names[i]], keys[names[i-1]]) {
					names[i], names[i-1] = names[i-1], names[i]
				}
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, not %s", expression, got, want)
		}
	}
	for _, wrong := range []string{"{.a", "{.a}{.b}", "{.a[}"} {
		if _, _, err := feed.SortBy(wrong); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}
