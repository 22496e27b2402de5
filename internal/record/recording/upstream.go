// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// An Upstream answers from a recording as an API server would: the cluster at
// the end of the recording, unchanging. Everybody may read everything; writes
// are refused.
type Upstream struct {
	store     *history.Store
	documents []Document
}

// NewUpstream returns the API server for a recording that was imported into
// store.
func NewUpstream(store *history.Store, documents []Document) *Upstream {
	u := &Upstream{store: store}
	for _, d := range documents {
		if isDiscovery(d.Path) {
			// The file may come from anyone, so browsers must not run anything
			// in it.
			if aggregated := strings.Contains(d.Type, "g=apidiscovery.k8s.io"); aggregated {
				d.Type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
			} else {
				d.Type = "application/json"
			}
			u.documents = append(u.documents, d)
		}
	}
	return u
}

// isDiscovery reports whether a path is part of discovery.
func isDiscovery(path string) bool {
	return path == "/version" || path == "/api" || path == "/apis" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/")
}

// RoundTrip implements http.RoundTripper.
func (u *Upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		return allow(r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return status(r, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "this is a recording: it cannot be changed"), nil
	case path == "/livez" || path == "/readyz" || path == "/healthz":
		return respond(r, http.StatusOK, "text/plain; charset=utf-8", []byte("ok")), nil
	}
	if d := u.document(path, r.Header.Get("Accept")); d != nil {
		return respond(r, http.StatusOK, d.Type, d.Body), nil
	}
	for _, res := range u.store.Resources() {
		if res.Path() != path {
			continue
		}
		if q := r.URL.Query(); q.Get("watch") != "" {
			return u.watch(r, res)
		}
		return u.list(r, res)
	}
	return status(r, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("this is a recording: it has nothing of %s", r.URL.Path)), nil
}

// CloseIdleConnections implements http.Client's optional interface. There are no
// connections.
func (u *Upstream) CloseIdleConnections() {}

// document returns the recorded answer for a path, aggregated discovery if the
// request accepts it.
func (u *Upstream) document(path, accept string) *Document {
	var found *Document
	for i := range u.documents {
		d := &u.documents[i]
		if d.Path != path {
			continue
		}
		aggregated := strings.Contains(d.Type, "g=apidiscovery.k8s.io")
		if aggregated == strings.Contains(accept, "g=apidiscovery.k8s.io") {
			return d
		}
		if !aggregated {
			found = d
		}
	}
	return found
}

// list returns the last state, as a Table if the objects have rows.
func (u *Upstream) list(r *http.Request, res kube.Resource) (*http.Response, error) {
	st, form := u.stream(res)
	table := asksTable(r, form)
	version := fmt.Sprintf(`"metadata":{"resourceVersion":"%d"},`, st.Head().RV)
	var b bytes.Buffer
	switch {
	case table:
		b.WriteString(`{"kind":"Table","apiVersion":"meta.k8s.io/v1",` + version + `"columnDefinitions":` + form.Item.Columns + `,"rows":[`)
	case form.Item.Typed():
		fmt.Fprintf(&b, `{"kind":%q,"apiVersion":%q,%s"items":[`, form.ListKind, res.APIVersion(), version)
	default:
		fmt.Fprintf(&b, `{"apiVersion":%q,"kind":%q,%s"items":[`, res.APIVersion(), form.ListKind, version)
	}
	one := r.URL.Query().Get("limit") == "1" // the gateway's query for the RV
	n := 0
	for o, err := range st.List(r.Context(), st.Head().RV, "", "") {
		if err != nil {
			return nil, err
		}
		if n++; n > 1 {
			if one {
				break
			}
			b.WriteByte(',')
		}
		if table {
			b.WriteString(row(o))
		} else {
			b.WriteString(o.JSON)
		}
	}
	b.WriteString("]}")
	return respond(r, http.StatusOK, "application/json", b.Bytes()), nil
}

// asksTable reports whether the request accepts a Table.
func asksTable(r *http.Request, form history.Form) bool {
	return form.Item.Columns != "" && strings.Contains(r.Header.Get("Accept"), "as=Table")
}

// row returns an object as a row of a Table.
func row(o *scan.Object) string {
	cells := o.Row
	if cells == "" {
		cells = `"cells":[]`
	}
	return "{" + cells + `,"object":` + o.JSON + "}"
}

// watch opens a stream without events.
func (u *Upstream) watch(r *http.Request, res kube.Resource) (*http.Response, error) {
	st, form := u.stream(res)
	q := r.URL.Query()
	if q.Get("sendInitialEvents") == "true" {
		return status(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden for watch of a recording"), nil
	}
	body, w := io.Pipe()
	go func() {
		if q.Get("allowWatchBookmarks") == "true" {
			mark := scan.BookmarkObject(form.Item, st.Head().RV, false)
			object := mark.JSON
			if asksTable(r, form) {
				object = fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"},"columnDefinitions":%s,"rows":[%s]}`,
					mark.RV, form.Item.Columns, row(mark))
			}
			fmt.Fprintf(w, `{"type":"BOOKMARK","object":%s}`+"\n", object) //nolint:errcheck // the reader is gone
		}
		<-r.Context().Done()
		w.CloseWithError(r.Context().Err())
	}()
	resp := respond(r, http.StatusOK, "application/json", nil)
	resp.Body, resp.ContentLength = body, -1
	return resp, nil
}

// stream returns the stream that a recording has of a resource.
func (u *Upstream) stream(res kube.Resource) (*history.Stream, history.Form) {
	all := u.store.Streams(res)
	st := all[len(all)-1]
	return st, st.Form()
}

// allow answers a SelfSubjectAccessReview.
func allow(r *http.Request) (*http.Response, error) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&review); err != nil {
		return status(r, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()), nil
	}
	if a := review.Spec.ResourceAttributes; a != nil {
		review.Status.Allowed = slices.Contains([]string{"get", "list", "watch"}, a.Verb)
	}
	body, err := json.Marshal(review)
	return respond(r, http.StatusCreated, "application/json", body), err
}

func status(r *http.Request, code int, reason metav1.StatusReason, message string) *http.Response {
	body, _ := json.Marshal(metav1.Status{ // always marshals
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code),
	})
	return respond(r, code, "application/json", body)
}

func respond(r *http.Request, code int, mediaType string, body []byte) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {mediaType}, "X-Content-Type-Options": {"nosniff"}},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
}
