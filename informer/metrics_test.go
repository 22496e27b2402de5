// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/internal/difference"
	"github.com/watchkeeper/watchkeeper/informer/internal/script"
)

// A metricsTranscript has Metrics that log each call. Durations are those of the
// test's bubble.
type metricsTranscript struct {
	transcript
	status func() Status
}

func (m *metricsTranscript) of(of Collection, status func() Status) Metrics {
	m.add("metrics of " + of.Resource.Name)
	m.status = status
	return Metrics{
		Changed: func(typ EventType) { m.add(fmt.Sprint("changed ", typ)) },
		Listed: func(reason string, objects int, took time.Duration) {
			m.add(fmt.Sprint("listed ", reason, " ", objects, " ", took))
		},
		Watched: func(end string, lasted time.Duration) { m.add(fmt.Sprint("watched ", end, " ", lasted)) },
		Failed: func(err error) {
			_, refused := errors.AsType[*RefusedError](err)
			m.add(fmt.Sprint("failed ", refused))
		},
		Delivered: func(typ EventType, coalesced bool) { m.add(fmt.Sprint("delivered ", typ, " ", coalesced)) },
		Reconciled: func(age, took time.Duration, err error) {
			m.add(fmt.Sprint("reconciled ", age, " ", took, " ", err))
		},
	}
}

// TestMetricsOfUpstream: changes, lists, watches and failures are reported once
// each.
func TestMetricsOfUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &metricsTranscript{}
		i, _ := newInformer(t, Options{Metrics: m.of}, script.Probe,
			script.Answer{Want: script.Streaming, Body: script.Event("ADDED", "a", 3) + script.Event("ADDED", "b", 4) + script.Bookmark(10, true), Late: []string{script.Event("MODIFIED", "a", 11) + expired}},
			script.At(20), script.Answer{Want: script.Streaming, Body: uid(script.Event("ADDED", "a", 12), "v") + script.Bookmark(20, true) + "no JSON\n"},
			script.At(20), script.Answer{Want: script.From(20), Then: syscall.ECONNREFUSED},
			script.At(20), script.Answer{Want: script.From(20), Lasts: minute},
			script.Answer{Want: script.From(20), Body: `{"type":"ERROR","object":` + script.Status(500) + "}\n"},
			script.Answer{Want: "limit=1", Code: 404, Body: script.Status(404)})
		if err := i.Run(t.Context()); err == nil {
			t.Error("no refusal")
		}
		want(t, m.read(), "metrics of pods",
			"changed ADDED", "changed ADDED", "listed initial 2 0s", "changed UPDATED", "watched expired 30s",
			"changed DELETED", "changed ADDED", "changed DELETED", "listed expired 1 0s", "watched malformed 0s", "failed false",
			"failed false", "watched ended 1m0s", "watched cut 0s", "failed false", "failed true")
		ref, _ := i.Get(Key{"ns", "a"})
		raw, err := ref.Raw()
		if s := m.status(); err != nil || s.Objects != 1 || s.Held != int64(len(raw)) || s.Relists["initial"] != 1 || s.Relists["expired"] != 1 {
			t.Errorf("%+v, %d bytes, %v", s, len(raw), err)
		}
	})
}

// TestMetricsOfSilence: a watch that the watchdog replaced is reported once, as
// silent.
func TestMetricsOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &metricsTranscript{}
		up := script.NewConnections(&script.Upstream{T: t, Answers: []script.Answer{script.Probe, script.WithBookmarks(), script.Answered, {Want: script.From(10), Stall: true, Body: script.Event("MODIFIED", "a", 14)}}})
		i := New(NewSource(&url.URL{Scheme: "http", Host: "upstream"}, up), pods, Raw(), Options{Metrics: m.of})
		start(t, i)
		time.Sleep(3 * minute)
		want(t, m.read()[3:], "watched silent 2m45s", "changed UPDATED")
	})
}

// TestMetricsOfSubscribers: each event that a subscriber receives is reported, with
// whether it is coalesced. Status.Behind is the lag of the slowest subscriber.
func TestMetricsOfSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &metricsTranscript{}
		i, _ := newInformer(t, Options{Metrics: m.of, Backlog: 1}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Bookmark(10, true),
			Late: []string{script.Event("ADDED", "a", 11), script.Event("ADDED", "b", 12) + script.Event("MODIFIED", "b", 13) + script.Event("MODIFIED", "b", 14) + script.Event("DELETED", "a", 15)}})
		release := make(chan bool)
		i.Handle(Handler[testPod]{Add: func(Ref[testPod]) { <-release }})
		start(t, i)
		time.Sleep(2 * minute)
		delivered := func() []string {
			return slices.DeleteFunc(m.read(), func(s string) bool { return !strings.HasPrefix(s, "delivered") })
		}
		want(t, delivered(), "delivered ADDED false")
		if s := m.status(); s.Behind != 2 {
			t.Errorf("%+v", s)
		}
		close(release)
		want(t, delivered(), "delivered ADDED false", "delivered ADDED true", "delivered DELETED false")
		if s := m.status(); s.Behind != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestMetricsOfReconcile: each call of the function is reported, retries too.
// Status.Queued counts waiting events, and is 0 after stop.
func TestMetricsOfReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &metricsTranscript{}
		i, _ := newInformer(t, Options{Metrics: m.of}, script.Probe, script.Answer{Want: script.Streaming, Stall: true, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true),
			Late: []string{script.Event("ADDED", "b", 11)}})
		calls := 0
		stop := Reconcile(i, ReconcileOptions[testPod]{Workers: 1, MinBackoff: time.Hour, MaxBackoff: time.Hour}, func(_ context.Context, e Event[testPod]) error {
			time.Sleep(time.Second)
			if calls++; calls == 1 {
				return errNo
			}
			return nil
		})
		end := start(t, i)
		time.Sleep(2 * minute)
		if s := m.status(); s.Queued != 1 {
			t.Errorf("%+v", s)
		}
		reconciled := slices.DeleteFunc(m.read(), func(s string) bool { return s[:4] != "reco" })
		want(t, reconciled, "reconciled 0s 1s no", "reconciled 0s 1s <nil>")
		stop()
		if s := m.status(); s.Queued != 0 {
			t.Errorf("%+v", s)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoMetrics: any function of Metrics may be nil.
func TestNoMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got Collection
		none := func(of Collection, _ func() Status) Metrics {
			got = of
			return Metrics{}
		}
		i, _ := newInformer(t, Options{Namespaces: []string{"ns"}, LabelSelector: "a=b", FieldSelector: "c=d", Metrics: none}, script.Probe,
			script.Answer{Want: script.Streaming, Body: script.Event("ADDED", "a", 3) + script.Bookmark(10, true)}, script.Answer{Want: "limit=1", Code: 404, Body: script.Status(404)})
		d := follow(t, i)
		stop := Reconcile(i, ReconcileOptions[testPod]{}, func(context.Context, Event[testPod]) error { return nil })
		defer stop()
		if err := i.Run(t.Context()); err == nil {
			t.Error("no refusal")
		}
		if events := d.read(); len(events) == 0 || events[0] != "ADDED ns/a →3 initial" {
			t.Errorf("%q", events)
		}
		if d := difference.Of(Collection{pods, []string{"ns"}, "a=b", "c=d"}, got); d != "" {
			t.Errorf("%s", d)
		}
	})
}
