// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

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
)

// The corpora are in testdata/fuzz.

// requestOf returns what net/http's server would make of a request with the
// header lines, false if it would not take it.
func requestOf(method, target, header string) (*http.Request, bool) {
	text := method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n\r\n"
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil || r.Host != "localhost" {
		return nil, false
	}
	for name, values := range r.Header { // which the server checks after that
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			return nil, false
		}
	}
	return r, true
}

// path returns the target's path as one would write it.
func (t target) path() string {
	p := strings.TrimSuffix(t.resource.Path(), t.resource.Name)
	if t.watchPath {
		p += "watch/"
	}
	if t.namespace != "" {
		p += "namespaces/" + t.namespace + "/"
	}
	p += t.resource.Name
	if t.name != "" {
		p += "/" + t.name
	}
	return p
}

// anyCBOR stands for an API server that offers CBOR.
func anyCBOR() bool { return true }

// understood reads a request all the way to its selectors and its form, as if
// it were for Pods whatever the resource.
func understood(r *http.Request) (asked target, rd *read, ok bool) {
	if rd, ok = parseRead(r); !ok {
		return target{}, nil, false
	}
	asked = rd.target
	if rd.verb != verbGet && !rd.selectors(true, builtInFields(pods)) {
		return asked, nil, false
	}
	return asked, rd, rd.negotiate(r, true, anyCBOR)
}

// FuzzParseRead: what is taken for a read of the cache is understood wholly.
// Written down again, it means the same.
func FuzzParseRead(f *testing.F) {
	o := pod("d", "a", 5, "color", "red")
	f.Fuzz(func(t *testing.T, uri, header string) {
		r, ok := requestOf(http.MethodGet, uri, header)
		if !ok {
			return
		}
		asked, rd, ok := understood(r)
		if !ok {
			return
		}
		again, ok := parsePath(asked.path())
		if again.verb = asked.verb; !ok || again != asked {
			t.Errorf("%+v is at %s, which is %+v", asked, asked.path(), again)
		}
		for _, part := range []string{rd.resource.Group, rd.resource.Version, rd.resource.Name, asked.namespace, rd.name, rd.opts.ResourceVersion} {
			if strings.ContainsAny(part, "/\x00") || part == "." || part == ".." {
				t.Errorf("%q is part of %+v", part, rd.target)
			}
		}
		if text := rd.opts.ResourceVersion; text != "" && text != kube.FormatRV(rd.rv) || text == "" && rd.rv != 0 {
			t.Errorf("RV %q is read as %d", text, rd.rv)
		}
		if rd.verb == verbGet {
			if rd.name == "" || rd.opts.ResourceVersion == "" {
				t.Errorf("a GET of %+v at %q", rd.target, rd.opts.ResourceVersion)
			}
			return
		}
		if rd.key != "" && rd.key.Namespace() != rd.namespace {
			t.Errorf("only %s can match, in namespace %q", rd.key, rd.namespace)
		}
		if rd.match.matches(o) && rd.key != "" && rd.key != o.Key && rd.namespace == o.Key.Namespace() {
			t.Errorf("%s matches, and only %s can", o.Key, rd.key)
		}

		q := url.Values{}
		set := func(name, value string) {
			if value != "" {
				q.Set(name, value)
			}
		}
		set("limit", number(rd.opts.Limit))
		set("continue", rd.opts.Continue)
		set("resourceVersion", rd.opts.ResourceVersion)
		set("resourceVersionMatch", string(rd.opts.ResourceVersionMatch))
		if rd.opts.AllowWatchBookmarks {
			set("allowWatchBookmarks", "true")
		}
		if rd.opts.TimeoutSeconds != nil {
			set("timeoutSeconds", number(*rd.opts.TimeoutSeconds))
		}
		if rd.opts.SendInitialEvents != nil {
			set("sendInitialEvents", map[bool]string{true: "true", false: "false"}[*rd.opts.SendInitialEvents])
		}
		if rd.opts.LabelSelector != nil {
			set("labelSelector", rd.opts.LabelSelector.String())
		}
		if rd.opts.FieldSelector != nil {
			set("fieldSelector", rd.opts.FieldSelector.String())
		}
		if rd.verb == verbWatch && rd.opts.Watch {
			set("watch", "true")
		}
		second, ok := requestOf(http.MethodGet, asked.path()+"?"+q.Encode(), header)
		if !ok {
			t.Fatalf("%s?%s is no request", asked.path(), q.Encode())
		}
		askedAgain, rdAgain, ok := understood(second)
		if !ok {
			t.Fatalf("%s is a read, and %s is not", uri, second.URL)
		}
		brief := func(asked target, rd *read) []any {
			return []any{asked, rd.target, rd.rv, rd.narrowed, rd.key, rd.opts.Limit, rd.opts.Continue,
				rd.opts.ResourceVersionMatch, rd.opts.AllowWatchBookmarks, rd.opts.SendInitialEvents,
				rd.match.matches(o), rd.selective(), rd.form.Media, rd.form.View, rd.form.Version}
		}
		if diff := cmp.Diff(brief(asked, rd), brief(askedAgain, rdAgain), cmp.AllowUnexported(target{})); diff != "" {
			t.Errorf("%s and %s (-first +second)\n%s", uri, second.URL, diff)
		}
	})
}

func number(n int64) string {
	b, _ := json.Marshal(n) // numbers always marshal
	return string(b)
}

// FuzzContinue: a token that is taken leads into its scope, and means the same
// when it is minted here.
func FuzzContinue(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, namespace string) {
		got, err := decodeContinue(text, namespace)
		if err != nil {
			return
		}
		if got.rv == 0 || !strings.HasPrefix(string(got.start), scopePrefix(namespace)) || got.start == kube.Key(scopePrefix(namespace)) {
			t.Fatalf("%q in %q leads to %+v", text, namespace, got)
		}
		last, ok := strings.CutSuffix(string(got.start), "\x00")
		if !ok {
			return // not behind an object; none of ours
		}
		again, err := decodeContinue(encodeContinue(got.rv, kube.Key(last), namespace), namespace)
		if err != nil || again != got {
			t.Fatalf("%+v comes back as %+v, %v", got, again, err)
		}
	})
}

// FuzzSelectors holds what is selected here to what apimachinery selects of the
// decoded object.
func FuzzSelectors(f *testing.F) {
	f.Fuzz(func(t *testing.T, labelSelector, fieldSelector, namespace, name, labelKey, labelValue, node, phase string, host bool) {
		for _, s := range []string{namespace, name, labelKey, labelValue, node, phase} {
			if !utf8.ValidString(s) {
				return // JSON cannot say it
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
		rd, ok := parseRead(httptest.NewRequest(http.MethodGet, "/api/v1/pods?"+q.Encode(), nil))
		if !ok || !rd.selectors(true, builtInFields(rd.resource)) {
			return
		}
		byLabel, err := labels.Parse(labelSelector)
		if err != nil {
			t.Fatalf("%q is taken: %v", labelSelector, err)
		}
		byField, err := fields.ParseSelector(fieldSelector)
		if err != nil {
			t.Fatalf("%q is taken: %v", fieldSelector, err)
		}
		want := byLabel.Matches(labels.Set(p.Labels)) && byField.Matches(fields.Set{
			"metadata.name": name, "metadata.namespace": namespace,
			"spec.nodeName": node, "spec.host": node, "spec.restartPolicy": "Always",
			"spec.hostNetwork": map[bool]string{true: "true", false: "false"}[host],
			"status.phase":     phase, "status.nominatedNodeName": node,
		})
		if got := rd.selectsAll(o); got != want {
			t.Errorf("labels %q, fields %q select %s: %v, want %v", labelSelector, fieldSelector, text, got, want)
		}
	})
}

// selectsAll reports whether an object is selected, in the scope of the read.
func (rd *read) selectsAll(o *scan.Object) bool {
	return rd.match.matches(o) && (rd.namespace == "" || rd.namespace == o.Key.Namespace()) && (rd.key == "" || rd.key == o.Key)
}
