// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// chartFiles has the alert rules and the dashboard.
const chartFiles = "../deploy/chart/watchkeeper/files/"

// TestAlerts: each expression of the alert rules and of the dashboard is valid, and a
// gateway that records and serves has every metric in it, with the labels that it selects.
func TestAlerts(t *testing.T) {
	clustertest.SkipShort(t)
	text, err := os.ReadFile(chartFiles + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string } `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var selectors []*parser.VectorSelector
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
			if err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
				continue
			}
			if rule.Alert == "WatchkeeperResourceStale" { // Events get no bookmarks
				parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
					v, ok := n.(*parser.VectorSelector)
					if ok && strings.HasPrefix(v.Name, "watchkeeper_resource_") && !slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool {
						return m.Name == "resource" && !m.Matches("events.v1") && !m.Matches("events.v1.events.k8s.io") && m.Matches("pods.v1")
					}) {
						t.Errorf("%s fires for Events: %s", rule.Alert, v)
					}
					return nil
				})
			}
			if rule.Alert == "WatchkeeperHistoryGap" && !strings.Contains(rule.Expr, "by (job, instance)") {
				t.Errorf("%s fires for each resource: %s", rule.Alert, rule.Expr)
			}
			parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
				if v, ok := n.(*parser.VectorSelector); ok && v.Name != "up" { // Prometheus has that itself
					selectors = append(selectors, v)
				}
				return nil
			})
		}
	}
	selectors = append(selectors, dashboardSelectors(t)...)
	if len(selectors) < 25 {
		t.Errorf("only %d metrics are used", len(selectors))
	}

	recording, err := cluster.Gateway("--data-dir", t.TempDir(), "--record", "configmaps")
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Terminate()
	shared, err := cluster.SharedGateway(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Terminate()
	eventually(t, "the metrics of the alerts", func() string {
		resp, err := http.Get(recording.URL + "/api/v1/configmaps?resourceVersion=0")
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		got, err := scrape(recording.Admin + "/metrics")
		if err != nil {
			return err.Error()
		}
		users, err := scrape(shared.Admin + "/metrics")
		if err != nil {
			return err.Error()
		}
		for name, series := range users {
			// From the begin: nobody has asked for anything.
			if strings.HasPrefix(name, "watchkeeper_user_") || strings.HasPrefix(name, "watchkeeper_review_") || strings.HasPrefix(name, "watchkeeper_certificate_") {
				got[name] = series
			}
		}
		for _, s := range selectors {
			if !slices.ContainsFunc(got[s.Name], func(series []string) bool { return hasLabels(series, s.LabelMatchers) }) {
				return fmt.Sprintf("there is no %s", s)
			}
		}
		return ""
	})
}

func metricFamilies(url string) (map[string]*dto.MetricFamily, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text := expfmt.NewTextParser(model.UTF8Validation)
	return text.TextToMetricFamilies(resp.Body)
}

// scrape returns the names of the labels of each series, by the name of its samples.
func scrape(url string) (map[string][][]string, error) {
	families, err := metricFamilies(url)
	if err != nil {
		return nil, err
	}
	series := map[string][][]string{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var names []string
			for _, l := range m.GetLabel() {
				names = append(names, l.GetName())
			}
			if m.GetHistogram() != nil {
				series[name+"_bucket"] = append(series[name+"_bucket"], append(names, "le"))
				series[name+"_count"] = append(series[name+"_count"], names)
				continue
			}
			series[name] = append(series[name], names)
		}
	}
	return series, nil
}

// hasLabels reports whether a series has every label that the matchers name; Prometheus
// adds job and instance.
func hasLabels(series []string, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !strings.HasPrefix(m.Name, "__") && m.Name != "job" && m.Name != "instance" && !slices.Contains(series, m.Name) {
			return false
		}
	}
	return true
}

// dashboardSelectors returns the metrics of the dashboard.
func dashboardSelectors(t *testing.T) (all []*parser.VectorSelector) {
	t.Helper()
	for _, panel := range dashboardPanels(t) {
		for _, target := range panel.Targets {
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(target.Expr)
			if err != nil {
				t.Errorf("%s: %v", panel.Title, err)
				continue
			}
			parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
				if v, ok := n.(*parser.VectorSelector); ok {
					all = append(all, v)
				}
				return nil
			})
		}
	}
	return all
}
