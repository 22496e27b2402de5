// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (s *session) names(a answer) string {
	var all []string
	for _, o := range a.Items {
		all = append(all, strings.TrimPrefix(o.Metadata.Name, s.label()+"-"))
	}
	return strings.Join(all, " ")
}

func (s *session) wantNames(want string, a answer) {
	s.Helper()
	if got := s.names(a); a.Code != http.StatusOK || got != want {
		s.Errorf("%d, %q, want %q: %.300s", a.Code, got, want, a.Body)
	}
}

func testLists(s *session) {
	for _, name := range []string{"b", "c", "a"} {
		s.create(name, name, "color", map[string]string{"a": "red", "b": "blue", "c": "red"}[name])
	}
	a := s.get(s.path(""))
	s.wantNames("a b c", a)
	if a.Kind != "ConfigMapList" || a.APIVersion != "v1" || a.Items[0].Kind != "" || a.Items[0].APIVersion != "" || a.Items[0].Metadata.UID == "" {
		s.Errorf("%.500s", a.Body)
	}
	s.wantNames("a c", s.get(s.path("", "labelSelector", "color=red,test="+s.label())))
	s.wantNames("b", s.get(s.path("", "fieldSelector", "metadata.name="+s.label()+"-b")))
	one := s.get(s.path("b"))
	if one.Kind != "ConfigMap" || one.Data["value"] != "b" || one.rv() == 0 || a.rv() < one.rv() {
		s.Errorf("%.500s, in a list at %d", one.Body, a.rv())
	}
	if a := s.get(s.path("d")); a.Code != http.StatusNotFound || a.Reason != "NotFound" || a.Kind != "Status" {
		s.Errorf("%d %s", a.Code, a.Body)
	}
}

func testPages(s *session) {
	for i := range 5 {
		s.create(fmt.Sprint("p", i), "")
	}
	// Without a selector, the list has remainingItemCount; the namespace may have
	// other ConfigMaps.
	first := s.get(s.path("", "labelSelector", "", "limit", "1"))
	if n := first.Metadata.RemainingItemCount; first.Metadata.Continue == "" || n == nil || *n < 4 {
		s.Errorf("%.300s", first.Body)
	}
	page := s.get(s.path("", "limit", "2"))
	s.wantNames("p0 p1", page)
	if page.Metadata.RemainingItemCount != nil {
		s.Error("remainingItemCount in a list with a selector")
	}
	// All pages are at one resourceVersion.
	s.delete("p4")
	s.create("p9", "")
	rv := page.rv()
	for _, want := range []string{"p2 p3", "p4"} {
		page = s.get(s.path("", "limit", "2", "continue", page.Metadata.Continue))
		s.wantNames(want, page)
		if page.rv() != rv {
			s.Errorf("a page at %d, the first is at %d", page.rv(), rv)
		}
	}
	if page.Metadata.Continue != "" {
		s.Error("the last page continues")
	}
}

func testVersions(s *session) {
	s.create("a", "")
	old := s.get(s.path("")).Metadata.ResourceVersion
	s.create("b", "")
	now := s.get(s.path("")).Metadata.ResourceVersion
	for _, test := range []struct{ rv, match, limit, want string }{
		{"", "", "", "a b"},
		{old, "", "", "a b"},
		{old, "NotOlderThan", "", "a b"},
		{old, "Exact", "", "a"},
		{old, "", "10", "a"},
		{old, "NotOlderThan", "10", "a b"},
		{now, "Exact", "", "a b"},
	} {
		a := s.get(s.path("", "resourceVersion", test.rv, "resourceVersionMatch", test.match, "limit", test.limit))
		s.wantNames(test.want, a)
		if test.match == "Exact" && a.Metadata.ResourceVersion != test.rv {
			s.Errorf("an exact list at %s is at %s", test.rv, a.Metadata.ResourceVersion)
		}
	}
	// From the watch cache, which ignores the limit, and may lag.
	if a := s.get(s.path("", "resourceVersion", "0", "limit", "1")); len(a.Items) > 2 || a.Metadata.Continue != "" {
		s.Errorf("%.300s", a.Body)
	}
	a := s.get(s.path("", "resourceVersion", now+"0"))
	if a.Code != http.StatusGatewayTimeout || a.Reason != "Timeout" || len(a.Details.Causes) != 1 || a.Details.Causes[0].Reason != "ResourceVersionTooLarge" {
		s.Errorf("%d %s", a.Code, a.Body)
	}
}

func testRefusals(s *session) {
	rv := s.get(s.path("")).Metadata.ResourceVersion
	for _, test := range []struct {
		code  int
		query []string
	}{
		{422, []string{"resourceVersionMatch", "Exact"}},
		{422, []string{"resourceVersion", "0", "resourceVersionMatch", "Exact"}},
		{422, []string{"resourceVersion", rv, "resourceVersionMatch", "Nearly"}},
		{422, []string{"sendInitialEvents", "true"}},
		{422, []string{"watch", "true", "sendInitialEvents", "true"}},
		{422, []string{"watch", "true", "resourceVersionMatch", "NotOlderThan"}},
		{400, []string{"resourceVersion", "x"}},
		{400, []string{"continue", "x"}},
		{400, []string{"labelSelector", "="}},
		{406, []string{}},
	} {
		accept := ""
		if test.code == 406 {
			accept = "image/png"
		}
		a := s.read(s.send(http.MethodGet, s.path("", test.query...), accept, nil))
		if a.Code != test.code || a.Kind != "Status" {
			s.Errorf("%v: %d %s", test.query, a.Code, a.Body)
		}
	}
}

func testForms(s *session) {
	s.create("a", "1")
	const table, metadata = "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	const metadataList = "image/png,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	for _, test := range []struct{ accept, include, kind string }{
		{table, "Object", "ConfigMap"}, {table, "", "PartialObjectMetadata"}, {"image/png," + table, "Metadata", "PartialObjectMetadata"},
	} {
		for _, path := range []string{s.path("", "includeObject", test.include), s.path("a") + "?includeObject=" + test.include} {
			a := s.read(s.send(http.MethodGet, path, test.accept, nil))
			if a.Kind != "Table" || len(a.Rows) != 1 || a.Rows[0].Object.Kind != test.kind || a.Rows[0].Object.Metadata.Name != s.label()+"-a" {
				s.Errorf("%s: %s", path, a.Body)
			}
		}
	}
	lists := s.read(s.send(http.MethodGet, s.path(""), metadataList, nil))
	if lists.Kind != "PartialObjectMetadataList" || lists.APIVersion != "meta.k8s.io/v1" || len(lists.Items) != 1 ||
		lists.Items[0].Kind != "PartialObjectMetadata" || lists.Items[0].APIVersion != "meta.k8s.io/v1" || lists.Items[0].Data != nil {
		s.Errorf("%s", lists.Body)
	}
	watch := s.watchAs(metadata, "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan", "allowWatchBookmarks", "true")
	s.update("a", "2")
	for types := ""; types != "ADDED BOOKMARK MODIFIED "; {
		e, ok := watch.event()
		if !ok || e.Object.Kind != "PartialObjectMetadata" || e.Object.APIVersion != "meta.k8s.io/v1" || e.Object.rv() == 0 || e.Object.Data != nil {
			s.Fatalf("after %s: %+v", types, e)
		}
		if marked := strings.Contains(types, "BOOKMARK"); !marked || e.Type != "BOOKMARK" {
			types += e.Type + " "
		}
	}
	for path, wrong := range map[string]string{s.path("a"): metadataList, s.path(""): metadata} {
		if a := s.read(s.send(http.MethodGet, path, wrong, nil)); a.Code != http.StatusNotAcceptable || a.Reason != "NotAcceptable" {
			s.Errorf("%s: %d %s", path, a.Code, a.Body)
		}
	}
	if a := s.read(s.send(http.MethodPut, s.path("a"), metadata, s.configMap("a", "3"))); a.Kind != "PartialObjectMetadata" || a.Data != nil {
		s.Errorf("%s", a.Body)
	}
	one := s.read(s.send(http.MethodGet, s.path("a"), metadata, nil))
	if one.Kind != "PartialObjectMetadata" || one.Data != nil || one.rv() == 0 {
		s.Errorf("%s", one.Body)
	}
	for _, path := range []string{s.path(""), s.path("a")} {
		resp := s.send(http.MethodGet, path, "application/vnd.kubernetes.protobuf", nil)
		if a := s.read(resp); !strings.HasPrefix(a.Body, "k8s\x00") || resp.Header.Get("Content-Type") != "application/vnd.kubernetes.protobuf" {
			s.Errorf("%s: %.30q", path, a.Body)
		}
	}
}

func testWrites(s *session) {
	created := s.create("a", "1")
	if a := s.do(http.MethodPost, s.path(""), s.configMap("a", "2")); a.Code != http.StatusConflict || a.Reason != "AlreadyExists" {
		s.Errorf("%d %s", a.Code, a.Body)
	}
	updated := s.update("a", "2")
	if updated.rv() <= created.rv() || updated.Metadata.UID != created.Metadata.UID {
		s.Errorf("%s, then %s", created.Body, updated.Body)
	}
	stale := s.configMap("a", "3")
	stale["metadata"].(map[string]any)["resourceVersion"] = strconv.FormatUint(created.rv(), 10)
	if a := s.do(http.MethodPut, s.path("a"), stale); a.Code != http.StatusConflict || a.Reason != "Conflict" {
		s.Errorf("%d %s", a.Code, a.Body)
	}
	// An update without a change is none.
	if again := s.update("a", "2"); again.rv() != updated.rv() {
		s.Errorf("%s, then %s", updated.Body, again.Body)
	}
	delete(stale["metadata"].(map[string]any), "resourceVersion")
	stale["metadata"].(map[string]any)["uid"] = "other"
	if a := s.do(http.MethodPut, s.path("a"), stale); a.Code != http.StatusConflict || a.Reason != "Conflict" {
		s.Errorf("%d %s", a.Code, a.Body)
	}
	deletion := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": map[string]any{"uid": "other"}}
	a := s.do(http.MethodDelete, s.path("a"), deletion)
	want := fmt.Sprintf("Operation cannot be fulfilled on ConfigMap %q: the UID in the precondition (other) does not match the UID in record (%s). "+
		"The object might have been deleted and then recreated", s.label()+"-a", created.Metadata.UID)
	if a.Code != http.StatusConflict || a.Reason != "Conflict" || a.Message != want {
		s.Errorf("%d %s, want %s", a.Code, a.Body, want)
	}
	deletion["preconditions"] = map[string]any{"uid": created.Metadata.UID, "resourceVersion": created.Metadata.ResourceVersion}
	a = s.do(http.MethodDelete, s.path("a"), deletion)
	want = fmt.Sprintf("Operation cannot be fulfilled on ConfigMap %q: the ResourceVersion in the precondition (%d) does not match the ResourceVersion in record (%d). "+
		"The object might have been modified", s.label()+"-a", created.rv(), updated.rv())
	if a.Code != http.StatusConflict || a.Reason != "Conflict" || a.Message != want {
		s.Errorf("%d %s, want %s", a.Code, a.Body, want)
	}
	deletion["preconditions"] = map[string]any{"uid": created.Metadata.UID, "resourceVersion": updated.Metadata.ResourceVersion}
	s.must(http.StatusOK, s.do(http.MethodDelete, s.path("a"), deletion))
	for _, method := range []string{http.MethodDelete, http.MethodGet} {
		if a := s.do(method, s.path("a"), nil); a.Code != http.StatusNotFound || a.Reason != "NotFound" {
			s.Errorf("%s: %d %s", method, a.Code, a.Body)
		}
	}
	if again := s.create("a", "1"); again.Metadata.UID == created.Metadata.UID {
		s.Error("another object has the same uid")
	}
}

// patch applies a merge patch to an object.
func (s *session) patch(name, body string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPatch, s.api.URL+s.path(name), strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := s.api.Client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	return s.read(resp)
}

func testPatches(s *session) {
	created := s.create("a", "1", "color", "red")
	patched := s.must(http.StatusOK, s.patch("a", `{"metadata":{"labels":{"color":null,"size":"3"}},"data":{"more":"2"}}`))
	if !maps.Equal(patched.Data, map[string]string{"value": "1", "more": "2"}) || patched.rv() <= created.rv() {
		s.Errorf("%s, then %s", created.Body, patched.Body)
	}
	s.wantNames("a", s.get(s.path("", "labelSelector", "!color,size in (3,4),test="+s.label())))
	for body, code := range map[string]int{
		`{"metadata":{"resourceVersion":"` + created.Metadata.ResourceVersion + `"},"data":{"more":"3"}}`: http.StatusConflict,
		`{"metadata":{"uid":"other"}}`: http.StatusUnprocessableEntity,
		`{"metadata":{"name":"b"}}`:    http.StatusBadRequest,
		`[`:                            http.StatusBadRequest,
	} {
		if a := s.patch("a", body); a.Code != code || a.Kind != "Status" {
			s.Errorf("%s: %d %s", body, a.Code, a.Body)
		}
	}
	if a := s.patch("none", `{}`); a.Code != http.StatusNotFound {
		s.Errorf("%d %s", a.Code, a.Body)
	}
}

func testFinalizers(s *session) {
	s.create("a", "1")
	s.must(http.StatusOK, s.patch("a", `{"metadata":{"finalizers":["example.com/one","example.com/two"]}}`))
	w := s.watch("resourceVersion", s.get(s.path("")).Metadata.ResourceVersion)
	s.delete("a")
	s.delete("a") // changes nothing
	s.must(http.StatusOK, s.patch("a", `{"metadata":{"finalizers":["example.com/two"]},"data":{"value":"2"}}`))
	s.must(http.StatusOK, s.patch("a", `{"metadata":{"finalizers":null},"data":{"value":"3"}}`))
	deletion, _ := w.event()
	if deletion.Type != "MODIFIED" || deletion.Object.Metadata.DeletionTimestamp == "" {
		s.Errorf("%+v", deletion)
	}
	// The last patch deletes the object, as it was before.
	w.want("MODIFIED a=2", "DELETED a=2")
	if a := s.get(s.path("a")); a.Code != http.StatusNotFound {
		s.Errorf("%d %s", a.Code, a.Body)
	}
}

func testNames(s *session) {
	o := s.configMap("", "1")
	metadata, _ := o["metadata"].(map[string]any)
	metadata["generateName"] = metadata["name"]
	delete(metadata, "name")
	a, b := s.do(http.MethodPost, s.path(""), o), s.do(http.MethodPost, s.path(""), o)
	for _, made := range []answer{a, b} {
		if name := made.Metadata.Name; made.Code != http.StatusCreated || len(name) != len(s.label())+6 || made.Metadata.CreationTimestamp == "" {
			s.Errorf("%d %s", made.Code, made.Body)
		}
	}
	if a.Metadata.Name == b.Metadata.Name {
		s.Error("two objects have the same name")
	}
	delete(metadata, "generateName")
	if a := s.do(http.MethodPost, s.path(""), o); a.Code != http.StatusUnprocessableEntity && a.Code != http.StatusBadRequest {
		s.Errorf("without a name: %d %s", a.Code, a.Body)
	}
}

func testDiscovery(s *session) {
	if a := s.get("/api/v1"); a.Kind != "APIResourceList" || !strings.Contains(a.Body, `"name":"configmaps"`) {
		s.Errorf("%.300s", a.Body)
	}
	for path, kind := range map[string]string{"/api": "APIVersions", "/apis": "APIGroupList"} {
		if a := s.get(path); a.Kind != kind {
			s.Errorf("%s: %.300s", path, a.Body)
		}
	}
	if a := s.get("/version"); a.Code != http.StatusOK || !strings.Contains(a.Body, `"gitVersion"`) {
		s.Errorf("%.300s", a.Body)
	}
	codes := []int{s.get("/apis/nothing.example.org/v1").Code, s.get("/nothing").Code, s.get("/api/v1/nothing").Code}
	if !slices.Equal(codes, []int{404, 404, 404}) {
		s.Errorf("%v", codes)
	}
	review := map[string]any{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
		"spec": map[string]any{"resourceAttributes": map[string]string{"verb": "list", "resource": "pods"}}}
	if a := s.do(http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review); a.Code != http.StatusCreated || !strings.Contains(a.Body, `"allowed":true`) {
		s.Errorf("%d %s", a.Code, a.Body)
	}
	if a := s.get("/api/v1/namespaces/kube-system"); a.Kind != "Namespace" || a.Metadata.UID == "" {
		s.Errorf("%.300s", a.Body)
	}
}
