// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// Discovery. The server serves /version, /api, /apis, /api/v1 and /apis/GROUP/VERSION
// in JSON, without aggregated discovery. (kube-apiserver also has that; clients fall
// back to this form.)

func (s *Server) serveDiscovery(w http.ResponseWriter, r *Request) {
	switch path := strings.Trim(r.URL.Path, "/"); path {
	case "version":
		writeJSON(w, http.StatusOK, apiversion.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"})
	case "api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})
	case "apis":
		writeJSON(w, http.StatusOK, s.groups())
	default:
		group, ok := strings.CutPrefix(path, "apis/")
		if !ok {
			group, _ = strings.CutPrefix(path, "api/")
		}
		gv, err := schema.ParseGroupVersion(group)
		list := s.resources(gv)
		if err != nil || len(list.APIResources) == 0 || ok != (gv.Group != "") {
			writeError(w, notFound(r))
			return
		}
		writeJSON(w, http.StatusOK, list)
	}
}

func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	seen := map[string]bool{"": true}
	for _, r := range s.opts.Resources {
		if !seen[r.Group] {
			seen[r.Group] = true
			v := metav1.GroupVersionForDiscovery{GroupVersion: r.apiVersion(), Version: r.Version}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: r.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
	}
	return list
}

func (s *Server) resources(gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
	}
	for _, r := range s.opts.Resources {
		if r.gvk().GroupVersion() != gv {
			continue
		}
		verbs := r.Verbs
		if verbs == nil {
			verbs = []string{"get", "list", "watch"}
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Name, SingularName: strings.ToLower(r.Kind), Kind: r.Kind, Namespaced: r.Namespaced, Verbs: verbs, ShortNames: r.ShortNames,
		})
	}
	return list
}
