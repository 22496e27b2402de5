// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

const uiPrefix = "/ui/"

//go:embed page
var pageFiles embed.FS

var indexTemplate = template.Must(template.ParseFS(pageFiles, "page/index.html"))

// pagePolicy allows the page its own style sheet and nothing else.
const pagePolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// newUI serves the placeholder page, whose links lead below apiPrefix.
func newUI(apiPrefix string) (http.Handler, error) {
	var index bytes.Buffer
	if err := indexTemplate.Execute(&index, struct{ API string }{apiPrefix}); err != nil {
		return nil, err
	}
	style, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			writeStatus(w, r, methodNotAllowed())
			return
		}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		switch strings.TrimPrefix(r.URL.Path, uiPrefix) {
		case "", "index.html":
			h.Set("Content-Security-Policy", pagePolicy)
			h.Set("Content-Type", "text/html; charset=utf-8")
			w.Write(index.Bytes()) //nolint:errcheck // the client is gone
		case "style.css":
			h.Set("Content-Type", "text/css; charset=utf-8")
			w.Write(style) //nolint:errcheck // the client is gone
		default:
			http.NotFound(w, r)
		}
	}), nil
}

// prefersHTML reports whether Accept names HTML and nothing it likes better,
// as browsers do when they navigate.
func prefersHTML(r *http.Request) bool {
	html, other := 0.0, 0.0
	for clause := range strings.SplitSeq(strings.Join(r.Header["Accept"], ","), ",") {
		mediaType, params, _ := strings.Cut(clause, ";")
		q := 1.0
		for param := range strings.SplitSeq(params, ";") {
			if v, ok := strings.CutPrefix(strings.TrimSpace(param), "q="); ok {
				if parsed, err := strconv.ParseFloat(v, 64); err == nil {
					q = parsed
				}
			}
		}
		switch mediaType = strings.ToLower(strings.TrimSpace(mediaType)); mediaType {
		case "text/html", "application/xhtml+xml":
			html = max(html, q)
		case "":
		default:
			other = max(other, q)
		}
	}
	return html > 0 && html >= other
}
