// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

const (
	// extensionPrefix is where what Kubernetes does not have is served.
	extensionPrefix = "/watchkeeper/v1/"
	multiwatchPath  = extensionPrefix + "multiwatch"
	// historyPath is where the history API is served, and below it.
	historyPath = extensionPrefix + "history"
	// openAPIPath is where all of this is described.
	openAPIPath = extensionPrefix + "openapi.json"
)

// extensions serves what is below extensionPrefix.
type extensions struct {
	multiwatch http.Handler
	history    *historyAPI
}

func (e *extensions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == multiwatchPath:
		e.multiwatch.ServeHTTP(w, r)
	case path == historyPath, strings.HasPrefix(path, historyPath+"/"):
		e.history.ServeHTTP(w, r)
	case path == openAPIPath:
		serveOpenAPI(w, r)
	default:
		writeStatus(w, r, newStatus(http.StatusNotFound, metav1.StatusReasonNotFound,
			"there is nothing at "+path+": "+openAPIPath+" says what there is"))
	}
}

func serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		writeStatus(w, r, methodNotAllowed())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(api.OpenAPI) //nolint:errcheck // nobody is left to tell
}
