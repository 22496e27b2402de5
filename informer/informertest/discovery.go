// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"net/http"
	"strings"
)

// Discovery. The server serves /version, /api, /apis, /api/v1 and /apis/GROUP/VERSION
// in JSON, without aggregated discovery. (kube-apiserver also has that; clients fall
// back to this form.)

// The types of discovery, as in metav1.
type (
	typeMeta struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	apiVersions struct {
		typeMeta
		Versions []string `json:"versions"`
	}
	groupList struct {
		typeMeta
		Groups []group `json:"groups"`
	}
	group struct {
		Name             string         `json:"name"`
		Versions         []groupVersion `json:"versions"`
		PreferredVersion groupVersion   `json:"preferredVersion"`
	}
	groupVersion struct {
		GroupVersion string `json:"groupVersion"`
		Version      string `json:"version"`
	}
	resourceList struct {
		typeMeta
		GroupVersion string        `json:"groupVersion"`
		APIResources []apiResource `json:"resources"`
	}
	apiResource struct {
		Name         string   `json:"name"`
		SingularName string   `json:"singularName"`
		Namespaced   bool     `json:"namespaced"`
		Kind         string   `json:"kind"`
		Verbs        []string `json:"verbs"`
		ShortNames   []string `json:"shortNames,omitempty"`
	}
)

func (s *Server) serveDiscovery(w http.ResponseWriter, r *Request) {
	switch path := strings.Trim(r.URL.Path, "/"); path {
	case "version":
		WriteJSON(w, http.StatusOK, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.2"})
	case "api":
		WriteJSON(w, http.StatusOK, apiVersions{typeMeta{"APIVersions", "v1"}, []string{"v1"}})
	case "apis":
		WriteJSON(w, http.StatusOK, s.groups())
	default:
		root, gv, _ := strings.Cut(path, "/")
		hasGroup := strings.Contains(gv, "/")
		list := s.resources(gv)
		if len(list.APIResources) == 0 || root != map[bool]string{true: "apis", false: "api"}[hasGroup] {
			s.serveOthers(w, r)
			return
		}
		WriteJSON(w, http.StatusOK, list)
	}
}

func (s *Server) groups() groupList {
	list := groupList{typeMeta: typeMeta{"APIGroupList", "v1"}, Groups: []group{}}
	seen := map[string]bool{"": true}
	for _, r := range s.opts.Resources {
		if !seen[r.Group] {
			seen[r.Group] = true
			v := groupVersion{r.APIVersion(), r.Version}
			list.Groups = append(list.Groups, group{r.Group, []groupVersion{v}, v})
		}
	}
	return list
}

func (s *Server) resources(gv string) resourceList {
	list := resourceList{typeMeta: typeMeta{"APIResourceList", "v1"}, GroupVersion: gv}
	for _, r := range s.opts.Resources {
		if r.APIVersion() != gv {
			continue
		}
		verbs := r.Verbs
		if verbs == nil {
			verbs = []string{"get", "list", "watch"}
		}
		list.APIResources = append(list.APIResources, apiResource{
			Name: r.Name, SingularName: strings.ToLower(r.Kind), Kind: r.Kind, Namespaced: r.Namespaced, Verbs: verbs, ShortNames: r.ShortNames,
		})
		if r.Status {
			list.APIResources = append(list.APIResources, apiResource{
				Name: r.Name + "/status", Kind: r.Kind, Namespaced: r.Namespaced, Verbs: []string{"get", "patch", "update"},
			})
		}
	}
	return list
}
