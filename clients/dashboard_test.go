// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A panel is one of the dashboard.
type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

func dashboardPanels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile(chartFiles + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []panel }
	if err := yaml.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

// TestDashboard: while a user opens more watches than it may have, each panel of the dashboard
// has an answer, by Prometheus's own engine from what the gateway says in a few seconds: is
// it healthy, does it record, who is throttled, how far is it behind, what expires.
func TestDashboard(t *testing.T) {
	clustertest.SkipShort(t)
	gw, err := cluster.SharedGateway(t.TempDir(), "--data-dir", t.TempDir(), "--record", "configmaps", "--max-streams-per-user", "5")
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Terminate()
	token, err := cluster.AdminToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		misbehave(ctx, t, gw.Config(token))
	}()
	defer func() { cancel(); <-done }()

	all := scrapes{}
	for range 12 {
		if err := all.add(gw.Admin + "/metrics"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	within := func(low, high float64) func(float64) bool {
		return func(v float64) bool { return low <= v && v <= high }
	}
	const day = 24 * 60 * 60
	expected := map[string]struct {
		labels string // of one of the series
		value  func(float64) bool
	}{
		"The API server answers":             {"", within(1, 1)},
		"Time since the last contact":        {"", within(0, 30)},
		"Recording works":                    {"", within(1, 1)},
		"Users who get 429, by bound":        {`bound="streams"`, within(0.5, 1e6)},
		"From publication to delivery, p99":  {"", within(0, 10)},
		"Time until the certificate expires": {"", within(300*day, 400*day)},
		"Reviews of callers, by code":        {`code="201", review="tokenreviews"`, within(0, 100)},
		"Requests refused or failed":         {`code="429"`, within(0.5, 1e6)},
	}
	for _, p := range dashboardPanels(t) {
		want, asked := expected[p.Title]
		delete(expected, p.Title)
		for _, target := range p.Targets {
			// A rate is that of the seconds that were scraped.
			expr := strings.NewReplacer("[5m]", "[10s]", "[1h]", "[10s]").Replace(target.Expr)
			answer, err := all.query(t.Context(), expr)
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
				continue
			}
			found := len(answer) > 0 && !asked
			for _, s := range answer {
				found = found || strings.Contains(s.Metric.String(), want.labels) && want.value(s.F)
			}
			if !found {
				t.Errorf("%s: %s is %v", p.Title, expr, answer)
			}
		}
	}
	for title := range expected {
		t.Errorf("the dashboard has no panel %q", title)
	}
}

// misbehave opens watches of ConfigMaps beyond the bound, at once when it is refused one, and creates
// ConfigMaps, until ctx ends.
func misbehave(ctx context.Context, t *testing.T, config *rest.Config) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Error(err)
		return
	}
	watcher, err := rest.HTTPClientFor(config) // client-go waits after a 429
	if err != nil {
		t.Error(err)
		return
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dashboard"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	maps := client.CoreV1().ConfigMaps(ns.Name)
	for n := 0; ctx.Err() == nil; n++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/namespaces/dashboard/configmaps?watch=1&resourceVersion=0", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := watcher.Do(req); err == nil {
			go func() {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}()
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("dashboard-", n)}}
		if _, err := maps.Create(ctx, cm, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// scrapes are the samples of each series of a gateway.
type scrapes map[string]*scrapedSeries

type scrapedSeries struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// add scrapes the gateway, as Prometheus does.
func (s scrapes) add(url string) error {
	families, err := metricFamilies(url)
	if err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	for name, family := range families {
		for _, m := range family.GetMetric() {
			sample := func(name string, value float64, more ...string) {
				b := labels.NewBuilder(labels.FromStrings(append(more, labels.MetricName, name, "job", "watchkeeper", "instance", "a")...))
				for _, l := range m.GetLabel() {
					b.Set(l.GetName(), l.GetValue())
				}
				key := b.Labels().String()
				if s[key] == nil {
					s[key] = &scrapedSeries{labels: b.Labels()}
				}
				s[key].samples = append(s[key].samples, scraped{now, value})
			}
			if h := m.GetHistogram(); h != nil {
				for _, bucket := range h.GetBucket() {
					sample(name+"_bucket", float64(bucket.GetCumulativeCount()), "le", fmt.Sprint(bucket.GetUpperBound()))
				}
				sample(name+"_bucket", float64(h.GetSampleCount()), "le", "+Inf")
				sample(name+"_count", float64(h.GetSampleCount()))
				continue
			}
			sample(name, m.GetCounter().GetValue()+m.GetGauge().GetValue()+m.GetUntyped().GetValue())
		}
	}
	return nil
}

// query returns what an expression is now.
func (s scrapes) query(ctx context.Context, expr string) (promql.Vector, error) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	queryable := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: s.selected}}
	query, err := engine.NewInstantQuery(ctx, queryable, nil, expr, time.Now())
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result := query.Exec(ctx)
	vector, err := result.Vector()
	return slices.Clone(vector), err
}

func (s scrapes) selected(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{}
	for _, series := range s {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.labels.Get(m.Name)) }) {
			set.left = append(set.left, storage.NewListSeries(series.labels, series.samples))
		}
	}
	slices.SortFunc(set.left, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return set
}

// A scraped value is a [chunks.Sample].
type scraped struct {
	at    int64 // in milliseconds
	value float64
}

func (v scraped) T() int64                      { return v.at }
func (v scraped) ST() int64                     { return 0 }
func (v scraped) F() float64                    { return v.value }
func (v scraped) H() *histogram.Histogram       { return nil }
func (v scraped) FH() *histogram.FloatHistogram { return nil }
func (v scraped) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (v scraped) Copy() chunks.Sample           { return v }

type seriesSet struct {
	left []storage.Series
	at   storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}
func (s *seriesSet) At() storage.Series                { return s.at }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
