// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

var pods = kube.Resource{Version: "v1", Name: "pods"}

const columns = `[{"name":"Name","type":"string"},{"name":"Status","type":"string"}]`

func pod(t testing.TB, namespace, name string, rv uint64, phase string) *scan.Object {
	t.Helper()
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"u-%d","resourceVersion":"%d","labels":{"app":"shop"},`+
		`"ownerReferences":[{"kind":"ReplicaSet","name":"shop-5d9c"}],"managedFields":[{"fieldsV1":{"k:{\"uid\":\"shop-5d9c\"}":{}}}]},"spec":{"nodeName":"node-7"},"status":{"phase":%q,"message":"<%s> on node-7.example\nshop-5d9c-zz"}}`,
		name, namespace, len(name), rv, phase, name))
	if err != nil {
		t.Fatal(err)
	}
	o.Row, o.Columns = fmt.Sprintf(`"cells":[%q,%q]`, name, phase), columns
	return o
}

func openStore(t testing.TB) *history.Store {
	t.Helper()
	s, err := history.Open("store", history.Options{Cluster: "c1", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func at(rv uint64) time.Time { return time.UnixMilli(1_700_000_000_000 + int64(rv)*1000) }

// fill records a short history: two Pods, changes, a gap, a deletion.
func fill(t testing.TB, s *history.Store) {
	t.Helper()
	st, err := s.Stream(pods)
	if err != nil {
		t.Fatal(err)
	}
	item, err := scan.ParseTemplate(`{"kind":"Pod","apiVersion":"v1","metadata":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	item.Columns = columns
	a, b := pod(t, "team", "shop-5d9c-aa", 5, "Pending"), pod(t, "other", "lamp", 7, "Running")
	a2, a3 := pod(t, "team", "shop-5d9c-aa", 12, "Running"), pod(t, "team", "shop-5d9c-aa", 25, "Failed")
	c := pod(t, "team", "shop-5d9c-bb", 28, "Pending")
	for _, err := range []error{
		st.Begin(history.Form{ListKind: "PodList", Item: item}, slices.Values([]*scan.Object{b, a}), 10, at(10)),
		st.Append([]history.Event{{Type: kube.Modified, Object: a2, Prev: a, At: at(12)}}, 15, at(15)),
		st.AppendGap([]history.Event{
			{Type: kube.Deleted, Object: b.At(21), Prev: b, Inferred: true, At: at(30)},
			{Type: kube.Modified, Object: a3, Prev: a2, Inferred: true, At: at(30)},
			{Type: kube.Added, Object: c, Inferred: true, At: at(30)},
		}, 30, at(30)),
		st.Append([]history.Event{{Type: kube.Deleted, Object: c.At(33), Prev: c, At: at(33)}}, 40, at(40)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

var discovery = []Document{
	{Path: "/api", Type: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", Body: json.RawMessage(`{"items":[]}`)},
	{Path: "/api", Type: "application/json", Body: json.RawMessage(`{"versions":["v1"]}`)},
}

func exporter(s *history.Store) *Exporter {
	return &Exporter{Store: s, Program: "test", Cluster: "c1", Documents: func(context.Context) ([]Document, error) { return discovery, nil }}
}

func everything() Selection {
	return Selection{Resources: []kube.Resource{{Group: "apps", Version: "v1", Name: "deployments"}, pods}, From: at(0), To: at(1000)}
}

func export(t testing.TB, s *history.Store, sel Selection) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := exporter(s).Export(t.Context(), &b, sel); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// story returns the whole history of Pods in a store, as text.
func story(t testing.TB, s *history.Store) string {
	t.Helper()
	var b strings.Builder
	for _, st := range s.Streams(pods) {
		tell(t, &b, st)
	}
	return b.String()
}

func tell(t testing.TB, b *strings.Builder, st *history.Stream) {
	t.Helper()
	span, form := st.Span(), st.Form()
	fmt.Fprintln(b, span.From.RV, span.From.At.UnixMilli(), span.To.RV, span.To.At.UnixMilli(), form.ListKind, form.Item.JSON, form.Item.Columns)
	for _, g := range st.Gaps() {
		fmt.Fprintln(b, "gap", g.From, g.To, g.Since.UnixMilli(), g.Until.UnixMilli())
	}
	for o, err := range st.List(t.Context(), span.From.RV, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(b, o.Key, o.JSON, o.Row, o.Columns)
	}
	for e, err := range st.Events(t.Context(), span.From.RV, span.To.RV) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(b, e.Type, e.At.UnixMilli(), e.Inferred, e.Object.JSON, e.Object.Row)
	}
}

func TestRoundTrip(t *testing.T) {
	from, to := openStore(t), openStore(t)
	fill(t, from)
	file := export(t, from, everything())
	h, documents, err := Import(t.Context(), bytes.NewReader(file), to, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := story(t, to), story(t, from); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(documents) != 2 || string(documents[1].Body) != `{"versions":["v1"]}` || h.Cluster != "c1" || !h.From.Equal(at(10)) || !h.To.Equal(at(40)) {
		t.Errorf("%+v, %d documents", h, len(documents))
	}
}

// TestTurn: an export has its user's turn, but not while it waits for the API server or its client.
func TestTurn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one turn of a user
	s := openStore(t)
	fill(t, s)
	users := fairness.NewUsers(fairness.Limits{}, slog.New(slog.DiscardHandler))
	jane := fairness.WithUser(t.Context(), fairness.UserNamed("jane"))
	free := func(when string, want bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(jane, time.Minute)
		if !want {
			cancel() // at once: a free turn is taken without a look at the context
		}
		defer cancel()
		turn, err := users.Turn(ctx)
		if turn.End(); (err == nil) != want {
			t.Errorf("%s: the turn is free: %t", when, err == nil)
		}
	}
	turn, err := users.Turn(jane)
	if err != nil {
		t.Fatal(err)
	}
	free("before", false)
	x := exporter(s)
	x.Turn = turn
	documents := x.Documents
	x.Documents = func(ctx context.Context) ([]Document, error) {
		free("while the API server is asked", true)
		return documents(ctx)
	}
	written := 0
	err = x.Export(jane, writerFunc(func(p []byte) (int, error) {
		free("while the client is written to", true)
		written += len(p)
		return len(p), nil
	}), everything())
	if err != nil || written == 0 {
		t.Errorf("%d bytes: %v", written, err)
	}
	turn.End()
	free("after", true)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestSelections(t *testing.T) {
	s := openStore(t)
	fill(t, s)
	tests := map[string]struct {
		change func(*Selection)
		want   string // the RVs of its content
	}{
		"all":            {func(*Selection) {}, "state 7 5 events 12 gap 30 21 25 28 33 head 40"},
		"since":          {func(s *Selection) { s.From = at(13) }, "state 7 12 events gap 30 21 25 28 33 head 40"},
		"until":          {func(s *Selection) { s.To = at(14) }, "state 7 5 events 12 head 12"},
		"since in a gap": {func(s *Selection) { s.From = at(20) }, "state 7 12 events gap 30 21 25 28 33 head 40"},
		"until in a gap": {func(s *Selection) { s.To = at(20) }, "state 7 5 events 12 head 15"},
		"a namespace":    {func(s *Selection) { s.Namespace = "other" }, "state 7 events gap 30 21 head 40"},
		"labels":         {func(s *Selection) { s.Labels, _ = labels.Parse("app=shop") }, "state 7 5 events 12 gap 30 21 25 28 33 head 40"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sel := everything()
			test.change(&sel)
			d, _, err := newDecoder(t.Context(), bytes.NewReader(export(t, s, sel)), 0, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			got := "state"
			for {
				l, err := d.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				began := strings.Contains(got, "events")
				if !began && (l.Event != nil || l.Gap != nil || l.Head != nil) {
					got += " events"
				}
				switch {
				case l.Object != nil:
					o, _ := d.object(l.Object)
					got += fmt.Sprint(" ", o.RV)
				case l.Event != nil:
					o, _ := d.object(&l.Event.objectLine)
					got += fmt.Sprint(" ", o.RV)
				case l.Gap != nil:
					got += fmt.Sprint(" gap ", l.Gap.To.RV)
				case l.Head != nil:
					got += fmt.Sprint(" head ", l.Head.RV)
				}
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			to := openStore(t)
			if _, _, err := Import(t.Context(), bytes.NewReader(export(t, s, sel)), to, 0); err != nil {
				t.Error(err)
			}
		})
	}
	sel := everything()
	sel.Namespace = "nowhere"
	if err := exporter(s).Export(t.Context(), io.Discard, sel); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
}

// TestNoneSelected: that there is no object of a resource in a namespace is a part of its
// recording, unless the resource has no namespaces.
func TestNoneSelected(t *testing.T) {
	s := openStore(t)
	fill(t, s)
	services, nodes, jobs := kube.Resource{Version: "v1", Name: "services"}, kube.Resource{Version: "v1", Name: "nodes"}, kube.Resource{Group: "batch", Version: "v1", Name: "jobs"}
	begin := func(res kube.Resource, objects ...*scan.Object) {
		t.Helper()
		st, err := s.Stream(res)
		if err != nil {
			t.Fatal(err)
		}
		item, err := scan.ParseTemplate(`{"kind":"X","apiVersion":"v1","metadata":{}}`)
		if err == nil {
			err = st.Begin(history.Form{ListKind: "XList", Item: item}, slices.Values(objects), 10, at(10))
		}
		if err == nil {
			err = st.Append(nil, 40, at(40))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	begin(services, pod(t, "other", "lamp", 7, "Running"))
	begin(nodes, pod(t, "", "n1", 8, "Running"))
	begin(jobs) // there were none, in any namespace
	for want, named := range map[string]bool{"pods services jobs": false, "pods services nodes jobs": true} {
		sel := everything()
		sel.Resources, sel.Named, sel.Namespace = []kube.Resource{pods, services, nodes, jobs}, named, "team"
		sel.ClusterScoped = []kube.Resource{nodes}
		to := openStore(t)
		if _, _, err := Import(t.Context(), bytes.NewReader(export(t, s, sel)), to, 0); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, res := range sel.Resources {
			if len(to.Streams(res)) > 0 {
				got = append(got, res.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestDamage: a damaged file is refused with a documented error.
func TestDamage(t *testing.T) {
	s := openStore(t)
	fill(t, s)
	file := export(t, s, everything())
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	pack := func(text string) []byte {
		e, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.EncodeAll([]byte(text), nil)
	}
	unpacked, err := d.DecodeAll(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := string(unpacked)
	lines := strings.SplitAfter(text, "\n")
	newer := pack(strings.Replace(text, `"format":1`, `"format":3`, 1))
	tests := map[string]struct {
		file []byte
		want error
	}{
		"empty":           {nil, ErrNotRecording},
		"half of it":      {file[:len(file)/2], ErrDamaged},
		"a text":          {[]byte("apiVersion: v1\nkind: Pod\n"), ErrNotRecording},
		"other zstd":      {pack("hello\n"), ErrNotRecording},
		"other JSON":      {pack("{}\n"), ErrNotRecording},
		"newer":           {newer, ErrNewerFormat},
		"another value":   {pack(strings.Replace(text, "Running", "running", 1)), ErrDamaged},
		"a line less":     {pack(strings.Join(slices.Delete(slices.Clone(lines), 6, 7), "")), ErrDamaged},
		"lines exchanged": {pack(strings.Join(append(append(slices.Clone(lines[:6]), lines[7], lines[6]), lines[8:]...), "")), ErrDamaged},
		"something more":  {pack(text + "{}\n"), ErrDamaged},
		"no end":          {pack(strings.Join(lines[:len(lines)-2], "")), ErrDamaged},
	}
	for i := 1; i < len(file); i += 1 + len(file)/200 {
		tests[fmt.Sprintf("cut at %d", i)] = struct {
			file []byte
			want error
		}{file[:i], ErrDamaged}
		broken := bytes.Clone(file)
		broken[i] ^= 0x10
		if same, err := d.DecodeAll(broken, nil); err == nil && bytes.Equal(same, unpacked) {
			continue // such as a reference to another place with the same text
		}
		tests[fmt.Sprintf("a bit at %d", i)] = struct {
			file []byte
			want error
		}{broken, ErrDamaged}
		for what, packed := range map[string][]byte{
			"inserted":       slices.Concat(file[:i], []byte("#*#*"), file[i:]),
			"zeros after":    append(bytes.Clone(file[:i]), make([]byte, len(file)-i)...),
			"zeros appended": append(bytes.Clone(file), make([]byte, i)...),
		} {
			tests[fmt.Sprintf("%s %d", what, i)] = struct {
				file []byte
				want error
			}{packed, ErrDamaged}
		}
	}
	for name, test := range tests {
		if want := test.want; want == ErrDamaged && !bytes.HasPrefix(test.file, []byte(zstdMagic)) {
			test.want = ErrNotRecording
		}
		_, _, err := Import(t.Context(), bytes.NewReader(test.file), openStore(t), 0)
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if !errors.Is(err, ErrNotRecording) && !errors.Is(err, ErrNewerFormat) && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v is none of the documented errors", name, err)
		}
	}
}

func TestPseudonyms(t *testing.T) {
	s, to := openStore(t), openStore(t)
	fill(t, s)
	sel := everything()
	sel.Pseudonyms = true
	h, _, err := Import(t.Context(), bytes.NewReader(export(t, s, sel)), to, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !h.Pseudonyms || h.Cluster == "c1" {
		t.Errorf("%+v", h)
	}
	got := story(t, to)
	for _, name := range []string{"5d9c", "lamp\"", "node-7", `"team"`, "lamp>", "team/"} {
		if strings.Contains(got, name) {
			t.Errorf("%q can still be read in\n%s", name, got)
		}
	}
	// The structure and words that are not names must not change.
	for _, word := range []string{`"app":"shop"`, "Running", `.example\n`, `"kind":"ReplicaSet"`, `"uid":"u-4"`} {
		if !strings.Contains(got, word) {
			t.Errorf("%q is gone from\n%s", word, got)
		}
	}
	// A name has one pseudonym; an owner's pseudonym is the prefix of its Pods'.
	var p struct {
		Metadata struct {
			Name            string
			OwnerReferences []struct{ Name string }
		}
		Spec   struct{ NodeName string }
		Status struct{ Message string }
	}
	for o, err := range to.Streams(pods)[0].List(t.Context(), 10, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(o.JSON), &p); err != nil {
			t.Fatal(err)
		}
		owner := p.Metadata.OwnerReferences[0].Name
		want := fmt.Sprintf("<%s> on %s.example\n%s-zz", p.Metadata.Name, p.Spec.NodeName, owner)
		if p.Status.Message != want {
			t.Errorf("message %q, want %q", p.Status.Message, want)
		}
		if o.Row != fmt.Sprintf(`"cells":[%q,%q]`, p.Metadata.Name, "Pending") && o.Row != fmt.Sprintf(`"cells":[%q,%q]`, p.Metadata.Name, "Running") {
			t.Errorf("row %s of %s", o.Row, p.Metadata.Name)
		}
	}
}

func TestUpstream(t *testing.T) {
	s := openStore(t)
	fill(t, s)
	u := NewUpstream(s, discovery)
	ask := func(ctx context.Context, method, url, accept, body string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, "http://recording"+url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		resp, err := u.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(url, "watch=") {
			return resp, ""
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(text)
	}
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	review := `{"spec":{"resourceAttributes":{"verb":%q}}}`
	tests := []struct {
		method, url, accept, body string
		code                      int
		want                      string
	}{
		{"GET", "/api", "application/json", "", 200, `{"versions":["v1"]}`},
		{"GET", "/api/", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "", 200, `{"items":[]}`},
		{"GET", "/apis", "application/json", "", 404, "it has nothing of /apis"},
		{"GET", "/api/v1/pods?limit=1", table, "", 200, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"40"},"columnDefinitions":` + columns + `,"rows":[{"cells":["shop-5d9c-aa","Failed"],"object":{"kind":"Pod"`},
		{"GET", "/api/v1/pods", "application/json", "", 200, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"40"},"items":[{"kind":"Pod"`},
		{"GET", "/api/v1/pods?watch=1&sendInitialEvents=true", table, "", 422, ""},
		{"GET", "/readyz", "", "", 200, "ok"},
		{"DELETE", "/api/v1/namespaces/d/pods/a", "", "", 405, "it cannot be changed"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", fmt.Sprintf(review, "list"), 201, `"allowed":true`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", fmt.Sprintf(review, "create"), 201, `"allowed":false`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "{", 400, "unexpected EOF"},
	}
	for _, test := range tests {
		resp, text := ask(t.Context(), test.method, test.url, test.accept, test.body)
		if resp.StatusCode != test.code || !strings.Contains(text, test.want) {
			t.Errorf("%s %s: %d %s", test.method, test.url, resp.StatusCode, text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	resp, _ := ask(ctx, "GET", "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=40", table, "")
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if f, err := scan.ParseFrame(line); err != nil || f.Type != kube.Bookmark || f.Object.RV != 40 || f.Object.Columns != columns {
		t.Errorf("%s: %+v, %v", line, f, err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of a watch: %v", err)
	}
}

// TestPseudonymsDiffer: two names never have one pseudonym, and a text without words is
// read fast.
func TestPseudonymsDiffer(t *testing.T) {
	p := newPseudonyms()
	p.add("web")
	for i := range 20000 {
		p.add(fmt.Sprintf("web-%d", i))
	}
	seen := map[string]string{}
	for name := range p.names {
		pseudonym := p.of(name)
		if other, twice := seen[pseudonym]; twice {
			t.Fatalf("%s and %s are both %s", name, other, pseudonym)
		}
		seen[pseudonym] = name
	}
	text := `{"a":"` + strings.Repeat("-", 1<<20) + `"}`
	if got := p.text(text, "Pod"); got != text {
		t.Errorf("%.100s", got)
	}
}

// TestHostileDocuments: no document of a file is served as HTML.
func TestHostileDocuments(t *testing.T) {
	u := NewUpstream(openStore(t), []Document{
		{Path: "/notes", Type: "text/html", Body: json.RawMessage(`"<script>"`)},
		{Path: "/api/v1/x", Type: "text/html", Body: json.RawMessage(`"<script>"`)},
	})
	for path, want := range map[string]string{"/notes": "404 Not Found application/json", "/api/v1/x": "200 OK application/json"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://recording"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Status + " " + resp.Header.Get("Content-Type"); got != want || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %s, %v", path, got, resp.Header)
		}
	}
}

// TestClockStep: a recording has the steps of the clock, so that a time that was shown
// twice is ambiguous in it, too.
func TestClockStep(t *testing.T) {
	from, to := openStore(t), openStore(t)
	fill(t, from)
	st := from.Streams(pods)[0]
	for _, err := range []error{
		st.Append([]history.Event{{Type: kube.Added, Object: pod(t, "team", "ahead", 50, "Running"), At: at(500)}}, 50, at(500)),
		st.Append([]history.Event{{Type: kube.Added, Object: pod(t, "team", "back", 60, "Running"), At: at(60)}}, 60, at(60)),
		st.Append(nil, 70, at(70)),
		st.Append(nil, 75, at(600)),
		st.Append(nil, 80, at(80)), // without an event before or after it
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Import(t.Context(), bytes.NewReader(export(t, from, everything())), to, 0); err != nil {
		t.Fatal(err)
	}
	if got, want := story(t, to), story(t, from); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got, want := to.Streams(pods)[0].ClockSteps(), st.ClockSteps()
	same := func(a, b history.ClockStep) bool { return a.RV == b.RV && a.From.Equal(b.From) && a.To.Equal(b.To) }
	if len(got) != 2 || !slices.EqualFunc(got, want, same) {
		t.Errorf("steps %v, not %v", got, want)
	}
}

// TestLateGap: a recording has the times whose events came at their end, and none that ends
// inside one has its events.
func TestLateGap(t *testing.T) {
	from := openStore(t)
	fill(t, from)
	st := from.Streams(pods)[0]
	x, y := pod(t, "late", "x", 50, "Pending"), pod(t, "late", "y", 51, "Pending")
	for _, err := range []error{
		st.AppendLate(nil, 40, at(40), at(45)),
		st.AppendLate([]history.Event{{Type: kube.Added, Object: x}, {Type: kube.Added, Object: y}}, 52, at(46), at(53)),
		st.Append([]history.Event{{Type: kube.Deleted, Object: x.At(54), Prev: x, At: at(54)}}, 54, at(54)),
		// Of two deletions at one RV, the second came late.
		st.AppendLate([]history.Event{{Type: kube.Deleted, Object: y.At(54), Prev: y}}, 54, at(54), at(60)),
		st.AppendLate(nil, 54, at(60), at(70)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	to := openStore(t)
	if _, _, err := Import(t.Context(), bytes.NewReader(export(t, from, everything())), to, 0); err != nil {
		t.Fatal(err)
	}
	if got, want := story(t, to), story(t, from); got != want {
		t.Errorf("imported\n%s\nexported\n%s", got, want)
	}
	if steps := to.Streams(pods)[0].ClockSteps(); len(steps) > 0 {
		t.Errorf("steps of the clock: %v", steps)
	}
	sel := everything()
	sel.To = at(50)
	part := openStore(t)
	if _, _, err := Import(t.Context(), bytes.NewReader(export(t, from, sel)), part, 0); err != nil {
		t.Fatal(err)
	}
	sel.From = at(48)
	if err := exporter(from).Export(t.Context(), io.Discard, sel); !errors.Is(err, ErrNothing) {
		t.Errorf("an export of a time inside a late gap: %v", err)
	}
	if head := part.Streams(pods)[0].Head(); head.RV != 40 || !head.At.Equal(at(46)) {
		t.Errorf("a recording until a time in a late gap ends at %v", head)
	}
	sel.From, sel.To = at(72), at(80)
	sel.Known = func(kube.Resource) time.Time { return at(80) }
	after := openStore(t)
	if _, _, err := Import(t.Context(), bytes.NewReader(export(t, from, sel)), after, 0); err != nil {
		t.Fatal(err)
	}
	if st := after.Streams(pods)[0]; len(st.Gaps()) > 0 || !st.Span().From.At.Equal(at(72)) {
		t.Errorf("a recording from a time after a late gap: %v, gaps %v", st.Span(), st.Gaps())
	}
}

// TestOutages: a recording has those times in which the API server did not answer that are in its
// span: they are why its gaps are.
func TestOutages(t *testing.T) {
	from := openStore(t)
	fill(t, from)
	inGap := history.Outage{Since: at(16).UTC(), Until: at(29).UTC()}
	if err := from.AddOutages(history.Outage{Since: at(1), Until: at(9)}, inGap, history.Outage{Since: at(50), Until: at(60)}); err != nil {
		t.Fatal(err)
	}
	sel := everything()
	sel.From, sel.To = at(12), at(35)
	to := openStore(t)
	if _, _, err := Import(t.Context(), bytes.NewReader(export(t, from, sel)), to, 0); err != nil {
		t.Fatal(err)
	}
	if got, err := to.Outages(); err != nil || !slices.Equal(got, []history.Outage{inGap}) {
		t.Errorf("%v %v, want %v", got, err, inGap)
	}
}

// TestEpochs: a recording has all epochs of a resource in its time, as after a restore of etcd or
// when another API version is preferred, and older programs refuse one with several.
func TestEpochs(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) { testEpochs(t, kube.Resource{Version: version, Name: "pods"}) })
	}
}

func testEpochs(t *testing.T, second kube.Resource) {
	from := openStore(t)
	fill(t, from)
	form := from.Streams(pods)[0].Form()
	st, err := from.NewEpoch(second)
	if err == nil {
		err = st.Begin(form, slices.Values([]*scan.Object{pod(t, "team", "shop-5d9c-aa", 12, "Running")}), 20, at(50))
	}
	if err == nil {
		err = st.Append([]history.Event{{Type: kube.Added, Object: pod(t, "team", "new", 21, "Pending"), At: at(55)}}, 22, at(60))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		from, to        uint64
		format, streams int
	}{{0, 100, 2, 2}, {0, 42, 1, 1}, {52, 100, 1, 1}, {20, 52, 2, 2}} {
		sel := everything()
		sel.From, sel.To = at(test.from), at(test.to)
		file, to := export(t, from, sel), openStore(t)
		h, _, err := Import(t.Context(), bytes.NewReader(file), to, 0)
		if err != nil {
			t.Fatal(err)
		}
		if h.Format != test.format || len(to.Streams(pods)) != test.streams {
			t.Errorf("from %d to %d: format %d, %d epochs", test.from, test.to, h.Format, len(to.Streams(pods)))
		}
		if sum, err := Check(t.Context(), bytes.NewReader(file)); err != nil || sum.Resources != 1 || len(sum.Spans) != 1 || !sum.Spans[0].To.Equal(h.To) {
			t.Errorf("from %d to %d: %v %+v", test.from, test.to, err, sum)
		}
		if got, want := story(t, to), story(t, from); test.to == 100 && test.from == 0 && got != want {
			t.Errorf("imported\n%s\nexported\n%s", got, want)
		}
	}
}
