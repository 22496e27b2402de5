// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/status"
)

const (
	// extensionPrefix is the path below which extensions of the API are served.
	extensionPrefix = "/watchkeeper/v1/"
	multiwatchPath  = extensionPrefix + "multiwatch"
	// openAPIPath serves the OpenAPI description of the extensions.
	openAPIPath = extensionPrefix + "openapi.json"
)

// extensions serves what is below extensionPrefix.
type extensions struct {
	multiwatch http.Handler
	history    http.Handler
}

func (e *extensions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == multiwatchPath:
		e.multiwatch.ServeHTTP(w, r)
	case isBelow(path, historyapi.Path):
		e.history.ServeHTTP(w, r)
	case path == openAPIPath:
		serveOpenAPI(w, r)
	default:
		status.Write(w, r, status.New(http.StatusNotFound, metav1.StatusReasonNotFound,
			"there is nothing at "+path+": "+openAPIPath+" says what there is"))
	}
}

// isBelow reports whether a path is another, or below it.
func isBelow(path, other string) bool { return path == other || strings.HasPrefix(path, other+"/") }

func serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		status.Write(w, r, status.MethodNotAllowed())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(api.OpenAPI) //nolint:errcheck // the client is gone
}
