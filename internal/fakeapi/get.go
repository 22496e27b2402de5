// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"net/http"
)

// GET. The server answers with the newest version of an object in every Format,
// whatever resourceVersion is requested, or 404. The namespace kube-system exists
// even if the server has no namespaces: its UID identifies the cluster.

func (s *Server) serveGet(w http.ResponseWriter, r *Request) {
	c := r.collection
	if c == nil {
		s.serveKubeSystem(w)
		return
	}
	format, ok := negotiate(r)
	if !ok {
		writeError(w, notAcceptable())
		return
	}
	s.mu.Lock()
	v, ok := c.get(r.key())
	s.mu.Unlock()
	if !ok {
		writeError(w, notFound(r))
		return
	}
	e, err := v.encoding(c, format, v.rv)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", c.formats[format].contentType(false))
	_, _ = w.Write(c.formats[format].appendObject(nil, e, v.rv)) // fails if the client has gone
}

func (c *collection) get(key string) (version, bool) {
	i, found := c.find(key)
	if !found {
		return version{}, false
	}
	return c.objects[i].version, true
}

func (s *Server) serveKubeSystem(w http.ResponseWriter) {
	writeJSON(w, http.StatusOK, map[string]any{
		"kind": "Namespace", "apiVersion": "v1",
		"metadata": map[string]any{"name": "kube-system", "uid": s.opts.ClusterUID, "resourceVersion": "1"},
	})
}
