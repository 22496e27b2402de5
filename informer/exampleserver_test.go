// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
)

// apiServer stands in for kubectl proxy in the examples. It serves a list of two
// objects, and with changes, then a change and a deletion.
func apiServer(kind, apiVersion, spec string, changes bool) *httptest.Server {
	object := func(name string, rv int, spec string) string {
		return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"name":%q,"namespace":"default","uid":"uid-%s","resourceVersion":"%d"},"spec":%s}`,
			kind, apiVersion, name, name, rv, spec)
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case !query.Has("watch"):
			fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"5"},"items":[]}`, kind, apiVersion)
			return
		case query.Has("sendInitialEvents"):
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object("one", 3, spec))
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object("two", 4, spec))
			fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", kind, apiVersion)
			if !changes {
				break
			}
			fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", object("one", 6, `{"nodeName":"n2","size":7}`))
			fmt.Fprintf(w, `{"type":"DELETED","object":%s}`+"\n", object("two", 7, spec))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
}
