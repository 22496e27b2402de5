// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
)

const (
	// documentTimeout bounds the requests to the upstream for the documents of an
	// export, and maxDocument the size of one document in bytes.
	documentTimeout = 10 * time.Second
	maxDocument     = 64 << 20
	// aggregated is the media type of aggregated discovery (KEP-3352).
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	// maxExports is how many exports run at a time: each reads its whole range of
	// the history, once or more. A further client is asked to retry after
	// exportRetry seconds.
	maxExports  = 2
	exportRetry = 10
)

// An export answers with a recording of a part of the history. It includes only
// resources that the caller may list, and the discovery documents that the API server
// returns to the caller (T8).
type export struct {
	*call
	selection recording.Selection
}

// export reads the parameters of an export.
func (c *call) export() (any, error) {
	x := &export{call: c}
	sel := &x.selection
	sel.Namespace, sel.Named = c.query.Get("namespace"), c.query.Has("resource")
	var err error
	if sel.Labels, err = labels.Parse(c.query.Get("labelSelector")); err != nil {
		return nil, refuseBad("labelSelector: %v", err)
	}
	switch text := c.query.Get("pseudonyms"); text {
	case "", "false":
	case "true":
		sel.Pseudonyms = true
	default:
		return nil, refuseBad("pseudonyms is %q: it has to be true or false", text)
	}
	if sel.Resources, err = c.readable(); err != nil {
		return nil, err
	}
	sel.Denied, sel.Within = c.denied, c.Recording().Scope
	from, to, err := c.span(sel.Resources)
	if err != nil {
		return nil, err
	}
	sel.From, sel.To, sel.Known = from.At, to.At, c.knownUntil
	for _, r := range sel.Resources { // which the caller may list in all namespaces
		if c.cluster[r] {
			sel.ClusterScoped = append(sel.ClusterScoped, r)
		}
	}
	return x, nil
}

// beginExport takes a slot for an export, before anything of it is worked out.
func (h *Handler) beginExport(ctx context.Context) (answered, end func(), err error) {
	end, err = h.exports.Acquire(ctx)
	if errors.Is(err, past.ErrBusy) {
		err = &status.Error{Status: status.TooMany(fmt.Sprintf("%d exports are being made: try again when one of them has ended", maxExports), exportRetry)}
	}
	return func() {}, end, err
}

func (x *export) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &exportBody{DeadlineWriter: httpstream.NewDeadlineWriter(w, httpstream.HeldTimeout), header: w.Header()}
	defer out.Clear()
	turn, err := x.Users.Turn(r.Context())
	if err != nil {
		x.fail(w, r, err)
		return
	}
	defer turn.End()
	e := recording.Exporter{
		Store: x.store, Program: x.Upstream.UserAgent(), Cluster: x.store.Cluster(),
		Documents: func(ctx context.Context) ([]recording.Document, error) {
			return x.documents(ctx, identity(x.r), x.selection.Resources)
		},
		Turn: turn,
	}
	err = e.Export(r.Context(), out, x.selection)
	switch {
	case err == nil:
	case out.begun:
		panic(http.ErrAbortHandler) // so that the client sees that the recording is cut short
	case errors.Is(err, recording.ErrNothing):
		sel := x.selection
		status.Write(w, r, status.NotFound(err.Error()+x.missed(sel.Namespace, x.unobserved(sel.Resources, sel.From, sel.To))))
	default:
		x.fail(w, r, err)
	}
}

// identity returns the headers by which the API server knows the caller of a request; nil for
// one whom it knows as the gateway. In shared mode these are callers without a token, whose
// rights to each path the filter has checked. A token may also have been the subprotocol of a
// WebSocket.
func identity(r *http.Request) http.Header {
	switch caller := access.CallerOf(r.Context()); {
	case caller == nil:
		return request.Identity(r.Header)
	case caller.HasToken():
		return http.Header{"Authorization": {"Bearer " + caller.Token}}
	}
	return nil
}

// documents asks the upstream, with the caller's identity, for the discovery and the
// definitions that a client reads before it reads objects, if their paths may be read.
func (c *call) documents(ctx context.Context, caller http.Header, resources []kube.Resource) ([]recording.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	type question struct{ path, accept string }
	questions := []question{{"/version", ""}, {"/api", aggregated}, {"/api", ""}, {"/apis", aggregated}, {"/apis", ""}}
	for _, id := range resources {
		questions = append(questions, question{upstream.GroupPath(id), ""})
		if !id.BuiltIn() {
			questions = append(questions, question{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + id.GroupResource(), ""})
		}
	}
	var documents []recording.Document
	for i, q := range questions {
		if slices.Contains(questions[:i], q) || c.filtered(q.path) != nil {
			continue
		}
		d, err := c.document(ctx, caller, q.path, q.accept)
		if err != nil {
			return nil, &status.Error{Status: status.Unavailable(fmt.Sprintf("the API server's %s, which an export needs, cannot be read: %v", q.path, err), true)}
		}
		if d != nil {
			documents = append(documents, *d)
		}
	}
	return documents, nil
}

// document returns one document. While the API server does not answer, it returns its
// last answer to the gateway, and nil if it had none, as for a definition, which the gateway
// does not keep. A caller with credentials of its own does not get those (T8).
func (c *call) document(ctx context.Context, caller http.Header, path, accept string) (*recording.Document, error) {
	var last *recording.Document
	known := caller == nil && c.Documents != nil && c.Documents.Find("/api", "") != nil
	if known {
		if d := c.Documents.Find(path, accept); d != nil {
			last = &recording.Document{Path: path, Type: d.Type, Body: d.Body}
		}
		if c.Upstream.Silent() {
			return last, nil
		}
	}
	d, err := document(ctx, c.Upstream, caller, path, accept)
	if err != nil && known && (last != nil || c.Upstream.Check(ctx) != nil) { // it may be down for less than a second
		return last, nil
	}
	return d, err
}

// document asks the upstream for one document. It returns nil if the upstream refuses
// it or does not have it, or if it is that of an aggregated API which is out of service.
func document(ctx context.Context, u *upstream.Server, caller http.Header, path, accept string) (*recording.Document, error) {
	r := u.NewRequest(ctx, http.MethodGet, path, "")
	r.Header.Set("Accept", strings.TrimPrefix(accept+",application/json", ","))
	resp, err := u.As(caller, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	lacking := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusNotAcceptable}
	if strings.HasPrefix(path, "/apis/") {
		lacking = append(lacking, http.StatusServiceUnavailable)
	}
	switch {
	case slices.Contains(lacking, resp.StatusCode):
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("larger than %d bytes", maxDocument)
	}
	return &recording.Document{Path: path, Type: resp.Header.Get("Content-Type"), Body: body}, nil
}

// An exportBody sets the headers of the answer at the first byte of the recording, so
// that an error before that is answered as a Status.
type exportBody struct {
	*httpstream.DeadlineWriter
	header http.Header
	begun  bool
}

func (b *exportBody) Write(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.header.Set("Content-Type", "application/zstd")
		b.header.Set("Cache-Control", "no-store")
		b.header.Set("Content-Disposition", `attachment; filename="recording.wkr"`)
	}
	return b.DeadlineWriter.Write(p)
}
