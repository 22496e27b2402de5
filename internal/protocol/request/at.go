// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// AtPrefix begins the paths of the past, such as
//
//	/at/10m/api/v1/pods
//	/at/2026-01-31T15:04:05Z/apis/apps/v1/deployments
//	/at/rv:12031/api/v1/namespaces/default/pods/web-0
//
// LIST, GET and WATCH of recorded resources are answered as of that moment. Discovery,
// which clients read first, is answered as of now.
const AtPrefix = "/at/"

var errNoMoment = errors.New("there is no moment in the path")

// IsAt reports whether a path begins with AtPrefix.
func IsAt(path string) bool { return strings.HasPrefix(path+"/", AtPrefix) }

// ParseMoment is [kube.ParseMoment] with times in UTC. An age keeps the reading of now by
// the monotonic clock, so that it stays the same when the clock is set.
func ParseMoment(text string, now time.Time) (kube.Moment, error) {
	when, err := kube.ParseMoment(text, now.UTC()) // without the reading
	if when.Ago {
		when.At = now.Add(when.At.Sub(now))
	}
	return when, err
}

// CutAt returns the moment in the path of a request, and the request without it. An
// age counts back from now; a time without a zone is UTC, wherever the gateway runs. If
// the text is not a moment, the error comes with the request, which may need none.
func CutAt(r *http.Request, now time.Time) (kube.Moment, *http.Request, error) {
	if r.URL.Path+"/" == AtPrefix {
		return kube.Moment{}, nil, errNoMoment
	}
	// The moment itself may be escaped, so the path is split as the client sent it.
	raw := RawPath(r)
	if !strings.HasPrefix(raw, AtPrefix) {
		raw = (&url.URL{Path: r.URL.Path}).EscapedPath() // the client escaped a part of the prefix
	}
	rest, _ := strings.CutPrefix(raw, AtPrefix)
	text, rest, _ := strings.Cut(rest, "/")
	text, err := url.PathUnescape(text)
	if err != nil {
		return kube.Moment{}, nil, err
	}
	path, err := url.PathUnescape("/" + rest)
	if err != nil {
		return kube.Moment{}, nil, err
	}
	when, err := ParseMoment(text, now)
	out := r.WithContext(r.Context())
	u := *r.URL
	out.URL = &u
	u.Path, u.RawPath, out.RequestURI = path, "/"+rest, "/"+rest
	return when, out, err
}
