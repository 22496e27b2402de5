// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// Writes. The server honours, with bodies in JSON:
//
//   - create (POST): 409 AlreadyExists if the object exists; generateName; 405 without
//     the namespace of a namespaced resource; 415 for a body that is not JSON, also of
//     an update.
//   - update (PUT): 404 if it does not exist; 409 Conflict if the body has
//     another resourceVersion than the object.
//   - patch (PATCH): a merge patch (RFC 7386), with the errors of an update; 415
//     for other kinds of patches.
//   - delete (DELETE): 404 if it does not exist; 409 Conflict if it has another uid
//     or resourceVersion than the preconditions of the options. An object with
//     finalizers gets a deletionTimestamp, and goes with the last of them. Other
//     options are ignored.
//   - /status of a Resource with Status: an update or a patch of the status
//     alone; other updates leave it as it is. metadata.generation grows when
//     anything but metadata and status changes, and with the deletionTimestamp.
//
// Nothing is validated or defaulted but uid and creationTimestamp. The objects of an
// owner are not deleted with it, nor those in a namespace. dryRun gets 400, and
// deletecollection 405.

func (s *Server) serveWrite(w http.ResponseWriter, r *Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	accepted := contentJSON
	if r.Verb == "patch" {
		accepted = "application/merge-patch+json"
	}
	isOptional := r.Verb == "delete" && len(body) == 0
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != accepted && (kind != "" || r.Verb == "patch") && !isOptional {
		failure(http.StatusUnsupportedMediaType, "UnsupportedMediaType",
			"the body of the request was in an unknown format - accepted media types include: %s", accepted).write(w)
		return
	}
	if r.Query.Has("dryRun") {
		noDryRun().write(w)
		return
	}
	v, deleted, wrong := s.write(r, body)
	code := http.StatusOK
	switch {
	case wrong != nil:
		wrong.write(w)
		return
	case deleted && r.Verb == "delete":
		WriteJSON(w, code, Status{Kind: "Status", APIVersion: "v1", Status: "Success"})
		return
	case r.Verb == "create":
		code = http.StatusCreated
	}
	f := onlyJSON(r)
	if f == nil {
		f = r.collection.json // a client that can send JSON can read it
	}
	v.write(w, code, f)
}

// write makes a change and returns the new version; the last one, if it has deleted the
// object.
func (s *Server) write(r *Request, body []byte) (v version, deleted bool, wrong *Status) {
	c := r.collection
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Verb == "create" {
		doc, wrong := s.newLocked(r, body)
		if wrong != nil {
			return v, false, wrong
		}
		s.putLocked(c, doc)
		v, _ := c.get(r.key())
		return v, false, nil
	}
	old, exists := c.get(r.key())
	if !exists || r.Subresource == "status" && !c.Status {
		return v, false, notFound(r)
	}
	was, err := parseDocument(old.Content.Render(""))
	if err != nil {
		return v, false, notEncoded(err)
	}
	doc, wrong := r.changed(old, was, body)
	if wrong != nil {
		return v, false, wrong
	}
	if isDeleting := len(doc.metadata["deletionTimestamp"]) > 0; (isDeleting || r.Verb == "delete") && !doc.hasFinalizers() {
		s.rv += s.opts.Step
		c.remove(r.key(), s.rv)
		s.wakeLocked()
		return old, true, nil
	}
	if bytes.Equal(doc.Render(""), was.Render("")) {
		return old, false, nil // as in the API server, nothing has changed
	}
	s.putLocked(c, doc)
	v, _ = c.get(r.key())
	return v, false, nil
}

// newLocked returns the object to create.
func (s *Server) newLocked(r *Request, body []byte) (*document, *Status) {
	c := r.collection
	if c.Namespaced && r.Namespace == "" {
		return nil, failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "the server does not allow this method on the requested resource")
	}
	doc, err := parse(body)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	if prefix := doc.text("generateName"); doc.name() == "" && prefix != "" {
		s.made++
		doc.set("name", fmt.Sprintf("%s%05d", prefix, s.made))
	}
	if r.Name = doc.name(); r.Name == "" {
		return nil, badRequest("an object needs a name: %.200s", body)
	}
	if _, exists := c.get(r.key()); exists {
		return nil, r.refused(http.StatusConflict, "AlreadyExists", "%s %q already exists", c.FullName(), r.Name)
	}
	delete(doc.metadata, "uid")
	doc.set("creationTimestamp", timestamp())
	if c.Namespaced {
		doc.set("namespace", r.Namespace)
	}
	if c.Status {
		doc.set("generation", 1)
		delete(doc.others, "status")
	}
	return doc, nil
}

// changed returns the object as an update, a patch or a deletion makes it.
func (r *Request) changed(old version, was *document, body []byte) (*document, *Status) {
	if r.Verb == "delete" {
		if wrong := r.mayDelete(old, body); wrong != nil {
			return nil, wrong
		}
		doc := was.clone()
		if doc.hasFinalizers() && len(doc.metadata["deletionTimestamp"]) == 0 {
			doc.set("deletionTimestamp", timestamp())
			doc.set("deletionGracePeriodSeconds", 0)
			if r.Resource.Status {
				doc.nextGeneration()
			}
		}
		return doc, nil
	}
	if r.Verb == "patch" {
		var err error
		if body, err = mergePatch(was.Render(""), body); err != nil {
			return nil, badRequest("%v", err)
		}
	}
	doc, err := parseDocument(body)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	if r.Name != doc.name() {
		return nil, badRequest("the name of the object (%s) does not match the name on the URL (%s)", doc.name(), r.Name)
	}
	if doc.rv != "" && doc.rv != strconv.FormatUint(old.rv, 10) {
		return nil, r.refused(http.StatusConflict, "Conflict", "Operation cannot be fulfilled on %s %q: "+
			"the object has been modified; please apply your changes to the latest version and try again", r.Resource.FullName(), r.Name)
	}
	switch uid := doc.uid(); {
	case uid == "" || uid == was.uid():
	case r.Verb == "patch":
		return nil, r.refused(http.StatusUnprocessableEntity, "Invalid",
			"%s %q is invalid: metadata.uid: Invalid value: %q: field is immutable", r.Resource.Kind, r.Name, uid)
	default:
		return nil, r.refused(http.StatusConflict, "Conflict", "Operation cannot be fulfilled on %s %q: "+
			"Precondition failed: UID in precondition: %s, UID in object meta: %s", r.Resource.FullName(), r.Name, uid, was.uid())
	}
	if r.Subresource == "status" {
		status := doc.others["status"]
		doc = was.clone()
		if doc.others["status"] = status; status == nil {
			delete(doc.others, "status")
		}
		return doc, nil
	}
	for _, member := range []string{"namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"} {
		if doc.metadata[member] = was.metadata[member]; doc.metadata[member] == nil {
			delete(doc.metadata, member)
		}
	}
	if r.Resource.Status {
		if doc.others["status"] = was.others["status"]; doc.others["status"] == nil {
			delete(doc.others, "status")
		}
		if !sameJSON(doc.others, was.others) {
			doc.nextGeneration()
		}
	}
	return doc, nil
}

// mayDelete returns the error of a deletion whose options do not allow it.
func (r *Request) mayDelete(old version, body []byte) *Status {
	var options struct {
		Preconditions struct{ UID, ResourceVersion *string }
		DryRun        []string
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return badRequest("%v", err)
		}
	}
	if len(options.DryRun) > 0 {
		return noDryRun()
	}
	required := options.Preconditions
	if uid := old.attributes().uid; required.UID != nil && *required.UID != uid {
		return r.notAsRequired("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *required.UID, uid)
	}
	if rv := strconv.FormatUint(old.rv, 10); required.ResourceVersion != nil && *required.ResourceVersion != rv {
		return r.notAsRequired("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). "+
			"The object might have been modified", *required.ResourceVersion, rv)
	}
	return nil
}

// notAsRequired returns the error of a precondition. As in the API server, it has the
// kind of the object in place of the resource.
func (r *Request) notAsRequired(format string, args ...any) *Status {
	of := r.Resource
	of.Name = of.Kind
	s := r.refused(http.StatusConflict, "Conflict", "Operation cannot be fulfilled on %s %q: %s", of.FullName(), r.Name, fmt.Sprintf(format, args...))
	s.Details.Kind = of.Kind
	return s
}

func noDryRun() *Status { return badRequest("this test server has no dry run") }

func (d *document) nextGeneration() {
	var generation int
	_ = json.Unmarshal(d.metadata["generation"], &generation) // 0 if it is no number
	d.set("generation", generation+1)
}

func (d *document) clone() *document {
	return &document{metadata: maps.Clone(d.metadata), others: maps.Clone(d.others)}
}

func timestamp() string { return time.Now().UTC().Format(time.RFC3339) }

// sameJSON reports whether two values have the same JSON, but for white space.
func sameJSON(a, b any) bool { return bytes.Equal(mustMarshal(a), mustMarshal(b)) }

// mergePatch applies a merge patch.
func mergePatch(to, patch []byte) ([]byte, error) {
	object, err := decode(to)
	if err != nil {
		return nil, err
	}
	change, err := decode(patch)
	if err != nil {
		return nil, err
	}
	return json.Marshal(merge(object, change))
}

// decode decodes an object, with numbers as they are written.
func decode(text []byte) (object map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&object); err != nil {
		return nil, fmt.Errorf("%w in %.200s", err, text)
	}
	return object, nil
}

func merge(object, change map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for name, value := range change {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			old, _ := object[name].(map[string]any)
			object[name] = merge(old, value)
		default:
			object[name] = value
		}
	}
	return object
}
