// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writes. The server honours, with bodies in JSON:
//
//   - create (POST): 409 AlreadyExists if the object exists.
//   - update (PUT): 404 if it does not exist; 409 Conflict if the body has
//     another resourceVersion than the object.
//   - delete (DELETE): 404 if it does not exist. Options are ignored; there are no
//     finalizers.
//
// Nothing is validated, and only the uid is defaulted.

func (s *Server) serveWrite(w http.ResponseWriter, r *Request) {
	if r.collection == nil {
		writeError(w, notFound(r))
		return
	}
	if r.Verb == "delete" {
		s.serveDelete(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	v, err := s.write(r, body)
	if err != nil {
		writeError(w, err)
		return
	}
	e, err := v.encoding(r.collection, JSON, v.rv)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Verb == "create" {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write(r.collection.formats[JSON].appendObject(nil, e, v.rv)) // fails if the client has gone
}

// write creates or updates the object in the body.
func (s *Server) write(r *Request, body []byte) (version, error) {
	c := r.collection
	doc, err := parseDocument(body)
	if err != nil {
		return version{}, apierrors.NewBadRequest(err.Error())
	}
	if c.Namespaced {
		doc.metadata["namespace"] = mustMarshal(r.Namespace)
	}
	if r.Verb == "update" && r.Name != doc.name() {
		return version{}, apierrors.NewBadRequest("the name of the object does not match the name on the URL")
	}
	r.Name = doc.name()
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists := c.get(r.key())
	switch {
	case r.Verb == "create" && exists:
		return version{}, apierrors.NewAlreadyExists(r.groupResource(), r.Name)
	case r.Verb == "update" && !exists:
		return version{}, notFound(r)
	case r.Verb == "update" && doc.rv != "" && doc.rv != strconv.FormatUint(old.rv, 10):
		return version{}, apierrors.NewConflict(r.groupResource(), r.Name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	s.putLocked(c, doc)
	v, _ := c.get(r.key())
	return v, nil
}

func (s *Server) serveDelete(w http.ResponseWriter, r *Request) {
	s.mu.Lock()
	rv := s.rv + s.opts.Step
	exists := r.collection.remove(r.key(), rv)
	if exists {
		s.rv = rv
		s.wakeLocked()
	}
	s.mu.Unlock()
	if !exists {
		writeError(w, notFound(r))
		return
	}
	writeJSON(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}
