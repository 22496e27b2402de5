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

// AtPrefix is in front of the paths of the past, as in
//
//	/at/10m/api/v1/pods
//	/at/2026-01-31T15:04:05Z/apis/apps/v1/deployments
//	/at/rv:12031/api/v1/namespaces/default/pods/web-0
//
// LIST, GET and WATCH of recorded resources are answered as of that moment.
// Discovery, which clients read first, is that of the present.
const AtPrefix = "/at/"

var errNoMoment = errors.New("there is no moment in the path")

// IsAt reports whether a path is one of the past.
func IsAt(path string) bool { return strings.HasPrefix(path+"/", AtPrefix) }

// CutAt takes the moment off the path of a request. Ages count back from now.
func CutAt(r *http.Request, now time.Time) (kube.Moment, *http.Request, error) {
	if r.URL.Path+"/" == AtPrefix {
		return kube.Moment{}, nil, errNoMoment
	}
	// In the path as it was sent, the moment may have escapes of its own.
	raw := RawPath(r)
	if !strings.HasPrefix(raw, AtPrefix) {
		raw = (&url.URL{Path: r.URL.Path}).EscapedPath() // the client escaped something in the prefix itself
	}
	rest, _ := strings.CutPrefix(raw, AtPrefix)
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
