// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package passthrough

import "net/http"

// sandboxPolicy gives a document its own origin, without the gateway's: no
// allow-same-origin.
const sandboxPolicy = "sandbox allow-scripts allow-forms allow-popups"

// confine keeps an answer of the API server from acting as a page of the gateway in a
// browser, with the rights of everyone who can connect: a Pod can answer anything to a
// request for its proxy subresource, and so can an aggregated API server. All answers
// are confined, whatever their path and type, since there is no complete list of the
// paths that lead to a proxy and the types that a browser renders. Programs ignore
// these headers.
func (p *Handler) confine(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	if p.AllowPages {
		return
	}
	h.Add("Content-Security-Policy", sandboxPolicy) // all policies apply
	// These act on the whole origin, not only on the document.
	for _, name := range []string{
		"Clear-Site-Data", "Service-Worker-Allowed", "Strict-Transport-Security", "Alt-Svc",
		"NEL", "Report-To", "Reporting-Endpoints", // send addresses of later requests to a collector
	} {
		h.Del(name)
	}
	if p.Shared != nil {
		h.Del("Set-Cookie") // it could replace the session of a proxy in front
	}
}
