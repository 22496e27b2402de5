// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// atPrefix stands in front of the paths of the past, as in
//
//	/at/10m/api/v1/pods
//	/at/2026-01-31T15:04:05Z/apis/apps/v1/deployments
//	/at/rv:12031/api/v1/namespaces/default/pods/web-0
//
// LIST, GET and WATCH of what is recorded are answered as of the moment. What a
// client asks for before it can read anything, discovery, is that of now.
const atPrefix = "/at/"

var errNoMoment = errors.New("there is no moment in the path")

// isAt reports whether a path is one of the past.
func isAt(path string) bool { return strings.HasPrefix(path+"/", atPrefix) }

// cutAt takes the moment off the path of a request.
func cutAt(r *http.Request, now time.Time) (kube.Moment, *http.Request, error) {
	if r.URL.Path+"/" == atPrefix {
		return kube.Moment{}, nil, errNoMoment
	}
	// In the path as it was sent, the moment may have escapes of its own.
	raw := rawPath(r)
	if !strings.HasPrefix(raw, atPrefix) {
		raw = (&url.URL{Path: r.URL.Path}).EscapedPath() // it has some in the prefix
	}
	rest, _ := strings.CutPrefix(raw, atPrefix)
	text, rest, _ := strings.Cut(rest, "/")
	text, err := url.PathUnescape(text)
	if err != nil {
		return kube.Moment{}, nil, err
	}
	when, err := kube.ParseMoment(text, now)
	if err != nil {
		return kube.Moment{}, nil, err
	}
	path, err := url.PathUnescape("/" + rest)
	if err != nil {
		return kube.Moment{}, nil, err
	}
	out := r.WithContext(r.Context())
	u := *r.URL
	out.URL = &u
	u.Path, u.RawPath, out.RequestURI = path, "/"+rest, "/"+rest
	return when, out, nil
}

// answerAt answers a request for the past, below the prefix.
func (g *Gateway) answerAt(rec *recorder, r *http.Request) {
	when, inner, err := cutAt(r, time.Now())
	if err != nil {
		rec.source = sourceHistory
		writeStatus(rec, r, badRequest(err.Error()+": a path of the past is /at/<when>/ and what would be asked for otherwise"))
		return
	}
	rec.request = inner
	if !g.stripsPrefix() && g.mountFor(inner.URL.Path) == nil {
		writeStatus(rec, inner, g.notServed())
		return
	}
	if refusal := g.filter.checkAPI(inner); refusal != nil {
		writeStatus(rec, inner, refusal)
		return
	}
	rec.source = sourceHistory
	switch {
	case inner.Method != http.MethodGet && inner.Method != http.MethodHead, opensConnection(inner):
		rec.Header().Set("Allow", "GET, HEAD")
		writeStatus(rec, inner, newStatus(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the past can only be read: "+r.URL.Path+" is for LIST, GET and WATCH"))
	case isDiscovery(inner.URL.Path):
		g.passThrough(rec, inner)
	case inner.Method == http.MethodHead:
		rec.Header().Set("Allow", "GET")
		writeStatus(rec, inner, methodNotAllowed())
	default:
		cut, release, _ := g.requests.bind(inner.Context(), false)
		defer release()
		g.reader.serveAt(rec, inner.WithContext(cut), when)
	}
}

// opensConnection reports whether a request is for a connection to something in
// the cluster rather than a watch.
func opensConnection(r *http.Request) bool {
	return isInteractive(r.URL.Path) || isUpgrade(r) && !(isWebSocket(r) && isWatch(r))
}

// isDiscovery reports whether a path tells which resources there are, what they
// look like, and who serves them.
func isDiscovery(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "", "version":
		return len(parts) == 1
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	case "openapi":
		return true
	}
	return false
}

// notThere is why nothing is served at a path of the past.
func notThere(path string) *metav1.Status {
	return notFound(fmt.Sprintf("there is nothing of the past at %s: recorded are lists and single objects, not their subresources", path))
}
