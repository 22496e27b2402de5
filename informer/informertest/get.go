// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import "net/http"

// GET. The server answers with the newest version of an object, whatever
// resourceVersion is requested, or 404.

func (s *Server) serveGet(w http.ResponseWriter, r *Request) {
	format, wrong := s.negotiate(r)
	if wrong != nil {
		wrong.write(w)
		return
	}
	s.mu.Lock()
	v, ok := r.collection.get(r.key())
	s.mu.Unlock()
	if !ok {
		notFound(r).write(w)
		return
	}
	v.write(w, http.StatusOK, format)
}

// write answers a request with an object.
func (v version) write(w http.ResponseWriter, code int, f Format) {
	e, err := v.encoding(f, v.rv)
	if err != nil {
		notEncoded(err).write(w)
		return
	}
	w.Header().Set("Content-Type", f.ContentType(false))
	w.WriteHeader(code)
	_, _ = w.Write(f.AppendObject(nil, e, v.rv)) // fails if the client has gone
}

func (c *collection) get(key string) (version, bool) {
	i, found := c.find(key)
	if !found {
		return version{}, false
	}
	return c.objects[i], true
}
