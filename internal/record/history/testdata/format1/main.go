// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// This program writes a history and a recording, and what is in them. scripts/format1
// runs it with the packages of commit 27e14f8, whose history has format 1:
//
//	history.zip   the directory, copied while it was open, as after kill -9
//	history.txt   what 27e14f8 reads from it
//	export.wkr    a recording of it
//	export.txt    what 27e14f8 reads from that
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/recording"
)

var (
	pods        = kube.Resource{Version: "v1", Name: "pods"}
	daemons     = kube.Resource{Group: "example.com", Version: "v1", Name: "daemons"}
	deployments = kube.Resource{Group: "apps", Version: "v1", Name: "deployments"}
)

const columns = `[{"name":"Name","type":"string"},{"name":"Status","type":"string"}]`

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// at is when an RV was the head: one a day.
func at(rv uint64) time.Time {
	return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(rv))
}

// pod returns a version of a Pod. The printer of the API server changes at 150.
func pod(name string, rv uint64, phase string) *kube.Object {
	o := must(kube.ScanObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"shop","uid":"u-%s","resourceVersion":"%d","labels":{"app":"shop"}},`+
		`"spec":{"nodeName":"node-7","note":"naïve \u0000 世界"},"status":{"phase":%q,"message":"version %d of %s"}}`, name, name, rv, phase, rv, name)))
	o.Row, o.Columns = fmt.Sprintf(`"cells":[%q,%q]`, name, phase), columns
	if rv >= 150 {
		o.Columns = strings.Replace(columns, "Status", "Phase", 1)
	}
	return o
}

func deployment(rv uint64, replicas int) *kube.Object {
	return must(kube.ScanObject(fmt.Sprintf(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"shop","uid":"d","resourceVersion":"%d"},"spec":{"replicas":%d}}`, rv, replicas)))
}

func list(objects ...*kube.Object) func(func(*kube.Object) bool) { return slices.Values(objects) }

func event(typ kube.EventType, o, prev *kube.Object) []history.Event {
	return []history.Event{{Type: typ, Object: o, Prev: prev, At: at(o.RV)}}
}

// fill records Pods with a gap, others in two epochs, and a Deployment.
func fill(s *history.Store) {
	form := history.Form{ListKind: "PodList", Item: must(kube.ScanForm(`{"kind":"Pod","apiVersion":"v1","metadata":{}}`))}
	form.Item.Columns = columns
	st := must(s.Stream(pods))
	a, b, c := pod("a", 5, "Running"), pod("b", 7, "Pending"), pod("c", 8, "Running")
	check(st.Begin(form, list(a, b, c), 10, at(10)))
	for rv := uint64(11); rv < 90; rv++ { // more versions than deltas in a row
		next := pod("a", rv, "Running")
		check(st.Append(event(kube.Modified, next, a), rv, at(rv)))
		a = next
	}
	check(st.Append(event(kube.Deleted, b.At(90), b), 90, at(90)))
	check(st.Append(nil, 100, at(100)))
	b2, c2 := pod("b", 110, "Pending"), pod("c", 115, "Failed")
	check(st.AppendGap([]history.Event{
		{Type: kube.Added, Object: b2, Inferred: true, At: at(120)},
		{Type: kube.Modified, Object: c2, Prev: c, Inferred: true, At: at(120)},
	}, 120, at(120)))
	check(st.Append([]history.Event{ // one RV, as of a deleted collection
		{Type: kube.Deleted, Object: b2.At(130), Prev: b2, At: at(130)},
		{Type: kube.Deleted, Object: c2.At(130), Prev: c2, At: at(130)},
	}, 130, at(130)))
	for rv := uint64(131); rv < 200; rv++ {
		next := pod("a", rv, "Running")
		check(st.Append(event(kube.Modified, next, a), rv, at(rv)))
		a = next
	}

	st = must(s.Stream(daemons))
	d := pod("d", 180, "Running")
	check(st.Begin(form, list(d), 185, at(185)))
	check(st.Append(event(kube.Modified, pod("d", 190, "Failed"), d), 190, at(190)))
	st = must(s.NewEpoch(daemons))
	d = pod("d", 20, "Running")
	check(st.Begin(form, list(d), 30, at(210)))
	check(st.Append([]history.Event{{Type: kube.Modified, Object: pod("d", 35, "Failed"), Prev: d, At: at(215)}}, 40, at(220)))

	st = must(s.Stream(deployments))
	form = history.Form{ListKind: "DeploymentList", Item: must(kube.ScanForm(`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{}}`)), Definition: "of old"}
	w := deployment(15, 1)
	check(st.Begin(form, list(w), 16, at(16)))
	check(st.Append(event(kube.Modified, deployment(17, 2), w), 17, at(17)))
}

// describe returns what is in a store. TestFormat1 has the same text.
func describe(s *history.Store) string {
	var b strings.Builder
	for _, resource := range s.Resources() {
		for _, st := range s.Streams(resource) {
			span, form := st.Span(), st.Form()
			fmt.Fprintln(&b, "stream", resource, st.Epoch(), span.From.RV, span.From.At.UnixMilli(), span.To.RV, span.To.At.UnixMilli())
			fmt.Fprintln(&b, "form", form.ListKind, form.Item.JSON, form.Item.Columns, form.Definition)
			for _, g := range st.Gaps() {
				fmt.Fprintln(&b, "gap", g.From, g.To, g.Since.UnixMilli(), g.Until.UnixMilli())
			}
			for day := span.From.At.Add(-12 * time.Hour); day.Before(span.To.At); day = day.AddDate(0, 0, 3) {
				m, err := st.At(day)
				fmt.Fprintln(&b, "at", day.UnixMilli(), m.RV, err == nil)
				if err != nil {
					continue
				}
				for o, err := range st.All(m.RV, "", "") {
					check(err)
					fmt.Fprint(&b, " ", o.Key, " ", o.RV)
				}
				fmt.Fprintln(&b)
			}
			for o, err := range st.All(span.From.RV, "", "") {
				check(err)
				fmt.Fprintln(&b, "object", o.JSON, o.Row, o.Columns)
			}
			for e, err := range st.Events(span.From.RV, span.To.RV) {
				check(err)
				fmt.Fprintln(&b, e.Type, e.At.UnixMilli(), e.Inferred, e.Object.JSON, e.Object.Row, e.Object.Columns)
			}
		}
	}
	return b.String()
}

// story returns what is in a store about Pods, as the tests of package recording do.
func story(s *history.Store) string {
	var b strings.Builder
	st := s.Streams(pods)[0]
	span, form := st.Span(), st.Form()
	fmt.Fprintln(&b, span.From.RV, span.From.At.UnixMilli(), span.To.RV, span.To.At.UnixMilli(), form.ListKind, form.Item.JSON, form.Item.Columns)
	for _, g := range st.Gaps() {
		fmt.Fprintln(&b, "gap", g.From, g.To, g.Since.UnixMilli(), g.Until.UnixMilli())
	}
	for o, err := range st.All(span.From.RV, "", "") {
		check(err)
		fmt.Fprintln(&b, o.Key, o.JSON, o.Row, o.Columns)
	}
	for e, err := range st.Events(span.From.RV, span.To.RV) {
		check(err)
		fmt.Fprintln(&b, e.Type, e.At.UnixMilli(), e.Inferred, e.Object.JSON, e.Object.Row)
	}
	return b.String()
}

// pack writes the files of a directory into an archive.
func pack(dir, file string) {
	f := must(os.Create(file))
	z := zip.NewWriter(f)
	check(z.AddFS(os.DirFS(dir)), z.Close(), f.Close())
}

func main() {
	out, temp := os.Args[1], must(os.MkdirTemp("", "format1-"))
	defer os.RemoveAll(temp)
	dir := filepath.Join(temp, "history")
	// Some of what is older than day 60 is removed. Retention works in steps of a thirty-second
	// part of the age, which is some weeks.
	opts := history.Options{Cluster: "c1", MaxAge: time.Since(at(60))}
	s := must(history.Open(dir, opts))
	fill(s)
	check(s.Trim(context.Background()))
	check(s.Compact(context.Background()), s.Close()) // tables, and a clean end
	s = must(history.Open(dir, opts))
	st := must(s.Stream(deployments))
	for rv := uint64(221); rv < 240; rv++ { // in the write-ahead log
		check(st.Append(event(kube.Modified, deployment(rv, int(rv)), nil), rv, at(rv)))
	}
	killed := filepath.Join(temp, "killed")
	check(os.CopyFS(killed, os.DirFS(dir)))
	pack(killed, filepath.Join(out, "history.zip"))
	check(os.WriteFile(filepath.Join(out, "history.txt"), []byte(describe(s)), 0o644))

	var file bytes.Buffer
	x := recording.Exporter{Store: s, Program: "27e14f8", Cluster: "c1", Documents: func(context.Context) ([]recording.Document, error) {
		return []recording.Document{{Path: "/api", Type: "application/json", Body: json.RawMessage(`{"versions":["v1"]}`)}}, nil
	}}
	check(x.Export(context.Background(), &file, recording.Selection{Resources: s.Resources(), From: at(0), To: at(300)}))
	check(os.WriteFile(filepath.Join(out, "export.wkr"), file.Bytes(), 0o644), s.Close())
	s = must(history.Open("imported", history.Options{Cluster: "c1", FS: vfs.NewMem()}))
	h, documents, err := recording.Import(context.Background(), &file, s, 0)
	check(err)
	text := fmt.Sprintln(h.Format, h.Program, h.Cluster, h.From.UnixMilli(), h.To.UnixMilli(), documents[0].Path, documents[0].Type, string(documents[0].Body)) + story(s)
	check(os.WriteFile(filepath.Join(out, "export.txt"), []byte(text), 0o644), s.Close())
}
