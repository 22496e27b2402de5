// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpguts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
)

// The corpora are in testdata/fuzz.

// requestOf returns the request that net/http's server would parse from the header
// lines, false if it would refuse it.
func requestOf(method, target, header string) (*http.Request, bool) {
	text := method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n\r\n"
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil || r.Host != "localhost" {
		return nil, false
	}
	for name, values := range r.Header { // the server checks these after parsing
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			return nil, false
		}
	}
	return r, true
}

// path returns the canonical path of the target.
func (t Target) path() string {
	p := strings.TrimSuffix(t.Resource.Path(), t.Resource.Name)
	if t.WatchPath {
		p += "watch/"
	}
	if t.Namespace != "" {
		p += "namespaces/" + t.Namespace + "/"
	}
	p += t.Resource.Name
	if t.Name != "" {
		p += "/" + t.Name
	}
	return p
}

// anyCBOR is the answer of an API server that offers CBOR.
func anyCBOR() bool { return true }

// understood is a read, with its selectors and its form as if it were for Pods
// whatever the resource.
type understood struct {
	*Read
	Selection
	Form
}

// understand parses a request with its selectors and form.
func understand(r *http.Request) (u understood, ok bool) {
	var err error
	if u.Read, err = Parse(r); err != nil || u.Read.Fields != nil {
		return u, false
	}
	if u.Verb != Get {
		if u.Selection, ok = u.Read.Select(true, BuiltInFields(pods)); !ok {
			return u, false
		}
	}
	u.Form, ok = u.Read.Negotiate(r, true, anyCBOR)
	return u, ok
}

// FuzzParse: a request that Parse accepts is understood in full: formatted again, it
// means the same.
func FuzzParse(f *testing.F) {
	o := pasttest.Pod("d", "a", 5, "color", "red")
	f.Fuzz(func(t *testing.T, uri, header string) {
		r, ok := requestOf(http.MethodGet, uri, header)
		if !ok {
			return
		}
		rd, ok := understand(r)
		if !ok {
			return
		}
		asked := rd.Target
		again, ok := ParsePath(asked.path())
		if again.Verb = asked.Verb; !ok || again != asked {
			t.Errorf("%+v is at %s, which is %+v", asked, asked.path(), again)
		}
		for _, part := range []string{rd.Resource.Group, rd.Resource.Version, rd.Resource.Name, asked.Namespace, rd.Name, rd.Options.ResourceVersion} {
			if strings.ContainsAny(part, "/\x00") || part == "." || part == ".." {
				t.Errorf("%q is part of %+v", part, rd.Target)
			}
		}
		if text := rd.Options.ResourceVersion; text != "" && text != kube.FormatRV(rd.RV) || text == "" && rd.RV != 0 {
			t.Errorf("RV %q is read as %d", text, rd.RV)
		}
		if rd.Verb == Get {
			if rd.Name == "" {
				t.Errorf("a GET of %+v at %q", rd.Target, rd.Options.ResourceVersion)
			}
			return
		}
		if rd.Key != "" && rd.Key.Namespace() != rd.Selection.Namespace {
			t.Errorf("only %s can match, in namespace %q", rd.Key, rd.Selection.Namespace)
		}
		if rd.Match.Matches(o) && rd.Key != "" && rd.Key != o.Key && rd.Selection.Namespace == o.Key.Namespace() {
			t.Errorf("%s matches, and only %s can", o.Key, rd.Key)
		}

		q := url.Values{}
		set := func(name, value string) {
			if value != "" {
				q.Set(name, value)
			}
		}
		set("limit", number(rd.Options.Limit))
		set("continue", rd.Options.Continue)
		set("resourceVersion", rd.Options.ResourceVersion)
		set("resourceVersionMatch", string(rd.Options.ResourceVersionMatch))
		if rd.Options.AllowWatchBookmarks {
			set("allowWatchBookmarks", "true")
		}
		if rd.Options.TimeoutSeconds != nil {
			set("timeoutSeconds", number(*rd.Options.TimeoutSeconds))
		}
		if rd.Options.SendInitialEvents != nil {
			set("sendInitialEvents", map[bool]string{true: "true", false: "false"}[*rd.Options.SendInitialEvents])
		}
		if rd.Options.LabelSelector != nil {
			set("labelSelector", rd.Options.LabelSelector.String())
		}
		if rd.Options.FieldSelector != nil {
			set("fieldSelector", rd.Options.FieldSelector.String())
		}
		if rd.Verb == Watch && rd.Options.Watch {
			set("watch", "true")
		}
		second, ok := requestOf(http.MethodGet, asked.path()+"?"+q.Encode(), header)
		if !ok {
			t.Fatalf("%s?%s is no request", asked.path(), q.Encode())
		}
		rdAgain, ok := understand(second)
		if !ok {
			t.Fatalf("%s is a read, and %s is not", uri, second.URL)
		}
		brief := func(u understood) []any {
			return []any{u.Target, u.RV, u.Selection.Namespace, u.Narrowed, u.Key, u.Options.Limit, u.Options.Continue,
				u.Options.ResourceVersionMatch, u.Options.AllowWatchBookmarks, u.Options.SendInitialEvents,
				u.Match.Matches(o), u.IsSelective(), u.Media, u.View, u.Version}
		}
		if diff := cmp.Diff(brief(rd), brief(rdAgain)); diff != "" {
			t.Errorf("%s and %s (-first +second)\n%s", uri, second.URL, diff)
		}
	})
}

func number(n int64) string {
	b, _ := json.Marshal(n) // numbers always marshal
	return string(b)
}

// FuzzContinue: an accepted token leads into its scope, and means the same when it is
// encoded again.
func FuzzContinue(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, namespace string) {
		got, err := DecodeContinue(text, namespace)
		if err != nil {
			return
		}
		if got.RV == 0 || !strings.HasPrefix(string(got.Start), scopePrefix(namespace)) || got.Start == kube.Key(scopePrefix(namespace)) {
			t.Fatalf("%q in %q leads to %+v", text, namespace, got)
		}
		last, ok := strings.CutSuffix(string(got.Start), "\x00")
		if !ok {
			return // not after an object: not a token of the gateway
		}
		again, err := DecodeContinue(EncodeContinue(got.RV, kube.Key(last), namespace), namespace)
		if err != nil || again != got {
			t.Fatalf("%+v is decoded again as %+v, %v", got, again, err)
		}
	})
}

// FuzzSelectors compares selections with those of apimachinery for the decoded object.
func FuzzSelectors(f *testing.F) {
	f.Fuzz(func(t *testing.T, labelSelector, fieldSelector, namespace, name, labelKey, labelValue, node, phase string, host bool) {
		for _, s := range []string{namespace, name, labelKey, labelValue, node, phase} {
			if !utf8.ValidString(s) {
				return // not encodable in JSON
			}
		}
		if namespace == "" || name == "" || strings.Contains(namespace+name, "/") {
			return
		}
		p := &corev1.Pod{
			TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "5",
				Labels: map[string]string{labelKey: labelValue, "a": "b"}},
			Spec:   corev1.PodSpec{NodeName: node, HostNetwork: host, RestartPolicy: corev1.RestartPolicyAlways},
			Status: corev1.PodStatus{Phase: corev1.PodPhase(phase), NominatedNodeName: node},
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		o, err := scan.ParseObject(string(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		q := url.Values{"labelSelector": {labelSelector}, "fieldSelector": {fieldSelector}}
		rd, err := Parse(httptest.NewRequest(http.MethodGet, "/api/v1/pods?"+q.Encode(), nil))
		if err != nil {
			return
		}
		selection, ok := rd.Select(true, BuiltInFields(rd.Resource))
		if !ok {
			return
		}
		byLabel, err := labels.Parse(labelSelector)
		if err != nil {
			t.Fatalf("%q is accepted: %v", labelSelector, err)
		}
		byField, err := fields.ParseSelector(fieldSelector)
		if err != nil {
			t.Fatalf("%q is accepted: %v", fieldSelector, err)
		}
		want := byLabel.Matches(labels.Set(p.Labels)) && byField.Matches(fields.Set{
			"metadata.name": name, "metadata.namespace": namespace,
			"spec.nodeName": node, "spec.host": node, "spec.restartPolicy": "Always",
			"spec.hostNetwork": map[bool]string{true: "true", false: "false"}[host],
			"status.phase":     phase, "status.nominatedNodeName": node,
		})
		if got := selection.selectsAll(o); got != want {
			t.Errorf("labels %q, fields %q select %s: %v, want %v", labelSelector, fieldSelector, text, got, want)
		}
	})
}

// selectsAll reports whether an object is selected, in the scope of the selection.
func (s Selection) selectsAll(o *scan.Object) bool {
	return s.Match.Matches(o) && (s.Namespace == "" || s.Namespace == o.Key.Namespace()) && (s.Key == "" || s.Key == o.Key)
}
