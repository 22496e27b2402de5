// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

var widgets = informertest.Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true}

// apiServer stands in for kubectl proxy in the examples. It has two objects of a
// resource, and with changes, each list is followed by a change and a deletion.
func apiServer(r informertest.Resource, spec string, changes bool) *httptest.Server {
	api := informertest.New(informertest.Options{FirstRV: 2, Resources: []informertest.Resource{r}})
	put := func(name, spec string) {
		api.Put(r.FullName(), fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"default","uid":"uid-%s"},"spec":%s}`, name, name, spec))
	}
	put("one", spec)
	put("two", spec)
	api.Advance(1)
	api.Control(func(w http.ResponseWriter, _ *informertest.Request, next func(http.ResponseWriter)) {
		if changes {
			w = &listed{w, func() {
				put("one", `{"nodeName":"n2","size":7}`)
				api.Delete(r.FullName(), "default/two")
			}}
		}
		next(w)
	})
	return httptest.NewServer(api)
}

// listed calls then when it has written the end of a list.
type listed struct {
	http.ResponseWriter
	then func()
}

func (l *listed) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func (l *listed) Write(b []byte) (int, error) {
	n, err := l.ResponseWriter.Write(b)
	if bytes.Contains(b, []byte("k8s.io/initial-events-end")) {
		l.then()
	}
	return n, err
}
