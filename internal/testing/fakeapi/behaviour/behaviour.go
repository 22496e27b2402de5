// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package behaviour tests that an API server behaves as package fakeapi documents. It
// runs against the simulated server and against a real one, which shows that the
// simulation is right. It writes ConfigMaps in one namespace, over HTTP.
package behaviour

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An API is an API server.
type API struct {
	Client *http.Client
	URL    string
	// Namespace has to exist and to have no ConfigMaps labelled behaviour=yes.
	Namespace string
}

// Each calls each with every test and its name.
func Each(each func(name string, test func(*testing.T, API))) {
	for _, test := range []struct {
		name string
		run  func(*session)
	}{
		{"lists", testLists}, {"pages", testPages}, {"versions", testVersions}, {"refusals", testRefusals},
		{"watch", testWatch}, {"selector", testSelector}, {"initial events", testInitialEvents},
		{"bookmarks", testBookmarks}, {"writes", testWrites}, {"patches", testPatches}, {"finalizers", testFinalizers}, {"names", testNames},
		{"forms", testForms}, {"discovery", testDiscovery},
	} {
		each(test.name, func(t *testing.T, api API) { test.run(&session{T: t, api: api}) })
	}
}

// A session is a test with its objects, which are labelled with its name.
type session struct {
	*testing.T
	api API
}

// An answer is the response to a request.
type answer struct {
	Code int
	Body string
	object
}

// object has the fields of an object, a list, a Table or a Status that the tests check.
type object struct {
	Kind, APIVersion string
	Reason, Message  string
	Metadata         struct {
		Name, UID, ResourceVersion, Continue string
		CreationTimestamp, DeletionTimestamp string
		RemainingItemCount                   *int
		Annotations                          map[string]string
	}
	Data    map[string]string
	Items   []object
	Rows    []struct{ Object object }
	Details struct {
		Causes []struct{ Reason string }
	}
}

func (o object) rv() uint64 {
	n, _ := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64) // 0 if it is not a number
	return n
}

func (s *session) label() string {
	_, name, _ := strings.Cut(s.Name(), "/")
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(name))
}

// path returns the path of the test's ConfigMaps, or of one. query has pairs; a value
// of "" omits the parameter.
func (s *session) path(name string, query ...string) string {
	path := "/api/v1/namespaces/" + s.api.Namespace + "/configmaps"
	if name != "" {
		return path + "/" + s.label() + "-" + name
	}
	values := url.Values{"labelSelector": {"test=" + s.label()}}
	for i := 0; i < len(query); i += 2 {
		if values.Set(query[i], query[i+1]); query[i+1] == "" {
			values.Del(query[i])
		}
	}
	return path + "?" + values.Encode()
}

func (s *session) send(method, path, accept string, body any) *http.Response {
	s.Helper()
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			s.Fatal(err)
		}
		in = strings.NewReader(string(text))
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.api.URL+path, in)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Accept", cmp.Or(accept, "application/json"))
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.api.Client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	return resp
}

func (s *session) do(method, path string, body any) answer {
	s.Helper()
	resp := s.send(method, path, "", body)
	return s.read(resp)
}

func (s *session) read(resp *http.Response) (a answer) {
	s.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	a.Code, a.Body = resp.StatusCode, string(text)
	_ = json.Unmarshal(text, &a.object) // some responses are not JSON
	return a
}

func (s *session) get(path string) answer { s.Helper(); return s.do(http.MethodGet, path, nil) }

// configMap returns an object of the test; labels are pairs.
func (s *session) configMap(name, value string, labels ...string) map[string]any {
	all := map[string]string{"behaviour": "yes", "test": s.label()}
	for i := 0; i < len(labels); i += 2 {
		all[labels[i]] = labels[i+1]
	}
	return map[string]any{
		"kind": "ConfigMap", "apiVersion": "v1",
		"metadata": map[string]any{"name": s.label() + "-" + name, "labels": all},
		"data":     map[string]string{"value": value},
	}
}

func (s *session) create(name, value string, labels ...string) answer {
	s.Helper()
	return s.must(http.StatusCreated, s.do(http.MethodPost, s.path(""), s.configMap(name, value, labels...)))
}

func (s *session) update(name, value string, labels ...string) answer {
	s.Helper()
	return s.must(http.StatusOK, s.do(http.MethodPut, s.path(name), s.configMap(name, value, labels...)))
}

func (s *session) delete(name string) {
	s.Helper()
	s.must(http.StatusOK, s.do(http.MethodDelete, s.path(name), nil))
}

func (s *session) must(code int, a answer) answer {
	s.Helper()
	if a.Code != code {
		s.Fatalf("%d, want %d: %.500s", a.Code, code, a.Body)
	}
	return a
}

// An event is an event of a watch.
type event struct {
	Type   string
	Object object
}

// A stream is a watch of the test's ConfigMaps.
type stream struct {
	s         *session
	bookmarks bool // it may have some
	lines     *bufio.Reader
}

func (s *session) watch(query ...string) *stream {
	s.Helper()
	return s.watchAs("application/json", query...)
}

// watchAs returns a watch of another form of the objects, in JSON.
func (s *session) watchAs(accept string, query ...string) *stream {
	s.Helper()
	resp := s.send(http.MethodGet, s.path("", append([]string{"watch", "true"}, query...)...), accept, nil)
	s.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		s.Fatalf("%+v", s.read(resp))
	}
	return &stream{s, slices.Contains(query, "allowWatchBookmarks"), bufio.NewReader(resp.Body)}
}

// next returns the next event in short form: its type, and the object's value and the
// end of its name. It skips bookmarks if the watch allows them: a real API server sends
// one when it likes, even right after that of the initial events.
func (w *stream) next() string {
	w.s.Helper()
	e, ok := w.event()
	for ok && w.bookmarks && e.Type == "BOOKMARK" {
		e, ok = w.event()
	}
	if !ok {
		return "end"
	}
	if e.Type == "ERROR" {
		return "ERROR " + e.Object.Reason
	}
	if e.Type == "BOOKMARK" {
		return "BOOKMARK"
	}
	return fmt.Sprintf("%s %s=%s", e.Type, strings.TrimPrefix(e.Object.Metadata.Name, w.s.label()+"-"), e.Object.Data["value"])
}

func (w *stream) event() (e event, ok bool) {
	w.s.Helper()
	line, err := w.lines.ReadBytes('\n')
	if err == io.EOF {
		return e, false
	}
	if err == nil {
		err = json.Unmarshal(line, &e)
	}
	if err != nil {
		w.s.Fatalf("%v in %s", err, line)
	}
	return e, true
}

// want fails the test unless the next events are as given.
func (w *stream) want(events ...string) {
	w.s.Helper()
	for _, want := range events {
		if got := w.next(); got != want {
			w.s.Fatalf("the watch has %q, want %q", got, want)
		}
	}
}
