// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"path"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// A continueToken has the API server's format (docs/kubernetes-watch.md, "Expired and
// future versions"): unpadded base64url of
//
//	{"v":"meta.k8s.io/v1","rv":232,"start":"/cm2\u0000"}
//
// where start is the key of the last item, relative to the scope of the request, and
// a NUL. The watch cache writes it with a leading slash, etcd's lists without one. So a
// client can get one page from the gateway and the next one from the API server, and
// the other way round.
type continueToken struct {
	Version string `json:"v"`
	RV      int64  `json:"rv"`
	Start   string `json:"start"`
}

var errContinue = errors.New("not a continue token that is served here")

// EncodeContinue returns the token of the page after the key last, as the API server's
// watch cache does. namespace is the scope, "" for all.
func EncodeContinue(rv uint64, last kube.Key, namespace string) string {
	return encodeContinue(rv, "/", last, namespace)
}

// EncodeUncachedContinue is EncodeContinue for a resource without a watch cache.
func EncodeUncachedContinue(rv uint64, last kube.Key, namespace string) string {
	return encodeContinue(rv, "", last, namespace)
}

func encodeContinue(rv uint64, slash string, last kube.Key, namespace string) string {
	start := strings.TrimPrefix(string(last), scopePrefix(namespace))
	b, _ := json.Marshal(continueToken{"meta.k8s.io/v1", int64(rv), slash + start + "\x00"}) // always marshals
	return base64.RawURLEncoding.EncodeToString(b)
}

// A Page says where a page of a list begins.
type Page struct {
	RV    uint64
	Start kube.Key // the first key that may be on it
}

// DecodeContinue reads a token of the gateway or of the API server.
func DecodeContinue(text, namespace string) (Page, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Page{}, err
	}
	var t continueToken
	if err := json.Unmarshal(b, &t); err != nil {
		return Page{}, err
	}
	start := strings.TrimPrefix(t.Start, "/")
	if t.Version != "meta.k8s.io/v1" || t.RV <= 0 || start == "" || path.Clean("/"+start) != "/"+start {
		return Page{}, errContinue
	}
	return Page{uint64(t.RV), kube.Key(scopePrefix(namespace) + start)}, nil
}

func scopePrefix(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace + "/"
}
