// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// fieldsParameter asks for a projection: only some fields of the objects. The API
// server ignores it, so that such a request is never passed through: what would
// come back is not what was asked for. It is answered from the cache, or with a
// Status that says why not.
const fieldsParameter = "fields"

// reachTimeout is how long a projection of an RV that is yet to come waits for it,
// as the API server waits.
const reachTimeout = 3 * time.Second

// asksFields reports whether a request for a resource is for a projection.
func asksFields(r *http.Request) bool {
	if r.Method != http.MethodGet || !mentions(r, fieldsParameter) || !r.URL.Query().Has(fieldsParameter) {
		return false
	}
	_, ok := parsePath(r.URL.Path)
	return ok
}

// serveFields answers a request for a projection. rd is nil for one that is not
// understood.
func (c *cache) serveFields(w *recorder, r *http.Request, rd *read) {
	refusal := readFields(r, rd)
	if refusal == nil {
		if c.answer(w, r, rd) {
			return
		}
		if refusal = rd.refusal; refusal == nil {
			refusal = c.whyNot(r.Context(), rd)
		}
	}
	writeStatus(w, r, refusal)
}

// readFields reads the parameter into rd. It returns why it cannot be served.
func readFields(r *http.Request, rd *read) *metav1.Status {
	paths, err := scan.ParsePaths(strings.Join(r.URL.Query()[fieldsParameter], ","))
	if err != nil {
		return badRequest("fields: " + err.Error() + ": name parts of the object such as spec.nodeName,spec.containers[*].image,metadata.labels['a.b/c']")
	}
	switch {
	case bringsIdentity(r.Header):
		return badRequest("fields: a request with credentials of its own is for the API server, which has no projections: leave fields or the credentials out")
	case rd == nil:
		return badRequest("fields: the rest of the request is not one that is answered from the cache: check its path and parameters")
	case rd.verb == verbGet:
		return badRequest("fields: projections are of lists and watches: use fieldSelector=metadata.name=" + rd.name)
	}
	if refusal := jsonOnly(r.Header.Get("Accept")); refusal != nil {
		return refusal
	}
	rd.fields = paths
	return nil
}

// jsonOnly returns nil if plain JSON is acceptable.
func jsonOnly(accept string) *metav1.Status {
	if accept == "" {
		return nil
	}
	table := false
	for _, clause := range goautoneg.ParseAccept(accept) {
		_, as := clause.Params["as"]
		json := clause.Type == "*" && clause.SubType == "*" || clause.Type == "application" && (clause.SubType == "json" || clause.SubType == "*")
		if json && !as {
			return nil
		}
		table = table || clause.Params["as"] == "Table"
	}
	if table {
		return badRequest("fields: a Table has columns instead: ask for one of the two")
	}
	return newStatus(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "fields: projections are JSON only: accept application/json")
}

// linkNext tells where the next page of a projection is (RFC 8288), so that it can
// be asked for while this one is still on its way.
func linkNext(h http.Header, r *http.Request, rd *read, next string) {
	if rd.fields == nil || next == "" {
		return
	}
	query := r.URL.Query()
	query.Del("resourceVersion")
	query.Del("resourceVersionMatch")
	query.Set("continue", next)
	h.Set("Link", "<?"+query.Encode()+`>; rel="next"`)
}

// refuse notes why a projection is not served from the cache. It returns false.
func (rd *read) refuse(why *metav1.Status) bool {
	rd.refusal = why
	return false
}

// refuseFor is refuse for an error of the timeline.
func (rd *read) refuseFor(err error) bool {
	if errors.Is(err, timeline.ErrCompacted) {
		return rd.refuse(expiredFor(err.Error()))
	}
	return false
}

// reach waits until the timeline has the RV of a projection.
func (rd *read) reach(ctx context.Context, res *resource, v *timeline.View) (*timeline.View, bool) {
	exact := rd.verb == verbList || rd.opts.SendInitialEvents != nil && *rd.opts.SendInitialEvents
	if rd.fields == nil || !exact || v.RV >= rd.rv {
		return v, true
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	reached, err := res.timeline.WaitRV(ctx, rd.rv)
	if err != nil {
		return v, rd.refuse(tooLarge(rd.rv, v.RV))
	}
	return reached, true
}

// whyNot returns why a projection that is in order is not served.
func (c *cache) whyNot(ctx context.Context, rd *read) *metav1.Status {
	if _, err := c.discovery.lookup(ctx, rd.resource, time.Time{}); errors.Is(err, errNoResource) {
		return newStatus(http.StatusNotFound, metav1.StatusReasonNotFound, "fields: there is no such resource that can be listed and watched")
	}
	c.mu.Lock()
	last := c.refused[rd.resource]
	c.mu.Unlock()
	if last.why != nil && last.why.Code == http.StatusForbidden && time.Now().Before(last.until) {
		return forbidden(last.why.Message) // to try again is of no use
	}
	return unavailable(fmt.Sprintf("fields: projections are made of what is watched here, and %s cannot be served from that now: try again, or leave fields out",
		rd.resource.GroupResource()), true)
}
