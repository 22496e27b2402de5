// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/recording"
)

const (
	exportPath = extensionPrefix + "history/export"
	// documentTimeout bounds what the upstream is asked for an export.
	documentTimeout = 10 * time.Second
	// aggregated is the discovery of all groups in one answer (KEP-3352).
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// An exporter answers with a recording of what the history has:
//
//	GET /watchkeeper/v1/history/export?from=<when>&to=<when>&resource=…&namespace=…&labelSelector=…&pseudonyms=true
//
// Only resources that the gateway may list are in it (T8).
type exporter struct {
	past    *past
	up      *Upstream
	program string
}

func (x *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		writeStatus(w, r, methodNotAllowed())
		return
	}
	store := x.past.store()
	if store == nil {
		writeStatus(w, r, newStatus(http.StatusNotFound, metav1.StatusReasonNotFound, "nothing is recorded here: see --data-dir"))
		return
	}
	sel, refusal := x.selection(r, store)
	if refusal != nil {
		writeStatus(w, r, refusal)
		return
	}
	out := &exportBody{w: w}
	e := recording.Exporter{
		Store: store, Program: x.program, Cluster: store.Cluster(),
		Documents: func(ctx context.Context) ([]recording.Document, error) { return x.documents(ctx, sel.Resources) },
	}
	switch err := e.Export(r.Context(), out, sel); {
	case err == nil:
	case out.begun:
		panic(http.ErrAbortHandler) // the client is not to take it for a whole one
	case errors.Is(err, recording.ErrNothing):
		writeStatus(w, r, newStatus(http.StatusNotFound, metav1.StatusReasonNotFound, err.Error()))
	default:
		writeStatus(w, r, newStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error()))
	}
}

// selection reads what is to be exported.
func (x *exporter) selection(r *http.Request, store *history.Store) (sel recording.Selection, refusal *metav1.Status) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return sel, badRequest(err.Error())
	}
	sel.Namespace, sel.Pseudonyms = q.Get("namespace"), q.Get("pseudonyms") == "true"
	if sel.Labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		return sel, badRequest("labelSelector: " + err.Error())
	}
	known := store.Resources()
	for _, text := range q["resource"] {
		i := slices.IndexFunc(known, func(id kube.Resource) bool { return id.GroupResource() == text })
		if i < 0 {
			return sel, newStatus(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s is not recorded; what is: %s", text, groupResources(known)))
		}
		sel.Resources = append(sel.Resources, known[i])
	}
	if len(sel.Resources) == 0 {
		sel.Resources = known
	}
	may := sel.Resources[:0:0]
	for _, id := range sel.Resources {
		if st := x.past.newest(id); st != nil && x.past.resource(st).access.allows(r.Context(), verbList) {
			may = append(may, id)
		} else if len(q["resource"]) > 0 {
			return sel, forbidden(fmt.Sprintf("the gateway may not list %s in all namespaces", id.GroupResource()))
		}
	}
	sel.Resources = may
	now := time.Now()
	for name, at := range map[string]*time.Time{"from": &sel.From, "to": &sel.To} {
		text := q.Get(name)
		if text == "" {
			text = map[string]string{"from": "1h", "to": "now"}[name]
		}
		when, err := kube.ParseWhen(text, now)
		if err != nil {
			return sel, badRequest(name + ": " + err.Error())
		}
		if when.At.IsZero() {
			return sel, badRequest(name + ": an export is of a time: give an age or an RFC 3339 time")
		}
		*at = when.At
	}
	// What was seen up to now is to be in it.
	for _, id := range sel.Resources {
		if err := x.past.sync(r.Context(), id); err != nil {
			return sel, newStatus(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, fmt.Sprintf("%s: %v", id.GroupResource(), err))
		}
	}
	return sel, nil
}

func groupResources(ids []kube.Resource) string {
	var names []string
	for _, id := range ids {
		names = append(names, id.GroupResource())
	}
	return strings.Join(names, ", ")
}

// documents asks the upstream for what a client needs to know of the API before
// it reads objects.
func (x *exporter) documents(ctx context.Context, resources []kube.Resource) ([]recording.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	type question struct{ path, accept string }
	questions := []question{{"/version", ""}, {"/api", aggregated}, {"/api", ""}, {"/apis", aggregated}, {"/apis", ""}}
	for _, id := range resources {
		questions = append(questions, question{groupPath(id), ""})
		if !id.BuiltIn() {
			questions = append(questions, question{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + id.GroupResource(), ""})
		}
	}
	var documents []recording.Document
	for i, q := range questions {
		if slices.Contains(questions[:i], q) {
			continue
		}
		d, err := x.document(ctx, q.path, q.accept)
		if err != nil {
			return nil, fmt.Errorf("the API server's %s: %w", q.path, err)
		}
		if d != nil {
			documents = append(documents, *d)
		}
	}
	return documents, nil
}

// document asks the upstream for one document, nil if it has none.
func (x *exporter) document(ctx context.Context, path, accept string) (*recording.Document, error) {
	r := x.up.NewRequest(ctx, http.MethodGet, path, "")
	r.Header.Set("Accept", strings.TrimPrefix(accept+",application/json", ","))
	resp, err := x.up.Transport.RoundTrip(r)
	if err != nil {
		return nil, redacted{err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, err
	}
	return &recording.Document{Path: path, Type: resp.Header.Get("Content-Type"), Body: body}, nil
}

// An exportBody begins the answer with the first byte of the recording.
type exportBody struct {
	w     http.ResponseWriter
	begun bool
}

func (b *exportBody) Write(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		h := b.w.Header()
		h.Set("Content-Type", "application/zstd")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Disposition", `attachment; filename="recording.wkr"`)
	}
	return b.w.Write(p)
}
