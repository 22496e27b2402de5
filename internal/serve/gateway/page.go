// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/webpage"
	"github.com/watchkeeper/watchkeeper/ui"
)

const uiPrefix = "/ui/"

// newUI serves the page, which finds the API below apiPrefix.
func newUI(apiPrefix string) (http.Handler, error) {
	files, err := webpage.New(ui.Files(), webpage.Config{API: ".." + apiPrefix, Extension: ".." + extensionPrefix})
	if err != nil {
		return nil, err
	}
	files = http.StripPrefix(uiPrefix, files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			status.Write(w, r, status.MethodNotAllowed())
			return
		}
		files.ServeHTTP(w, r)
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
