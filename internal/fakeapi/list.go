// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// LIST. The server honours:
//
//   - resourceVersion unset: the newest state, by limit. This is a consistent
//     read; the watch cache learns the resourceVersion, and bookmarks reach it.
//   - resourceVersion=0: the newest state; limit is ignored, as by the watch
//     cache.
//   - resourceVersion=N: the newest state, or 504 with the cause
//     ResourceVersionTooLarge if N is not reached. (kube-apiserver waits three
//     seconds first.)
//   - resourceVersionMatch=Exact, or N with a limit and no match: the state at N,
//     or 410 if N is compacted.
//   - continue: the page after the token's key, at the token's resourceVersion,
//     or 410 if that is compacted; remainingItemCount without selectors.
//   - labelSelector, and fieldSelector by any path. (kube-apiserver has a few
//     fields of each kind.)
//   - items by key, in every Format.

// chunk is the minimum size of a write, in bytes.
const chunk = 128 << 10

func (s *Server) serveList(w http.ResponseWriter, r *Request) {
	c := r.collection
	opts, err := s.options(r)
	if err != nil {
		writeError(w, err)
		return
	}
	format, ok := negotiate(r)
	if !ok {
		writeError(w, notAcceptable())
		return
	}
	at, start, all, err := s.read(r, opts)
	if err != nil {
		writeError(w, err)
		return
	}
	sel := selectionOf(r, opts)
	all = slices.DeleteFunc(all, func(v version) bool { return !sel.matches(c, v.object) || v.key <= start && start != "" })
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(at, 10)}
	if limit := int(opts.Limit); limit > 0 && len(all) > limit && opts.ResourceVersion != "0" {
		if sel.labels == nil && sel.fields == nil {
			meta.RemainingItemCount = new(int64(len(all) - limit))
		}
		all = all[:limit]
		meta.Continue = encodeToken(at, strings.TrimPrefix(all[limit-1].key, prefix(r.Namespace)))
	}
	s.writeList(w, c, format, meta, all)
}

// read returns the versions for a list, their resourceVersion, and the key after which
// the list begins.
func (s *Server) read(r *Request, opts *internalversion.ListOptions) (at uint64, start string, all []version, err error) {
	c := r.collection
	asked, err := parseRV(opts.ResourceVersion)
	if err != nil {
		return 0, "", nil, err
	}
	exact := opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact || opts.ResourceVersionMatch == "" && opts.Limit > 0 && asked > 0
	if opts.Continue != "" {
		if asked > 0 {
			return 0, "", nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		if asked, start, err = decodeToken(opts.Continue); err != nil {
			return 0, "", nil, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
		}
		start, exact = prefix(r.Namespace)+start, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case asked > s.rv:
		return 0, "", nil, tooLarge(asked, s.rv)
	case exact && asked < c.compacted && opts.Continue != "":
		return 0, "", nil, expired("The provided continue parameter is too old to display a consistent list result.")
	case exact && asked < c.compacted:
		return 0, "", nil, expired("The resourceVersion for the provided list is too old.")
	case exact:
		return asked, start, c.at(asked), nil
	case opts.ResourceVersion == "":
		c.progress = s.rv
	}
	return s.rv, "", c.now(), nil
}

func (s *Server) writeList(w http.ResponseWriter, c *collection, format Format, meta metav1.ListMeta, all []version) {
	f := c.formats[format]
	items, size := make([]*encoded, len(all)), 0
	for i, v := range all {
		e, err := v.encoding(c, format, v.rv)
		if err != nil {
			writeError(w, err)
			return
		}
		items[i] = e
		size += f.itemSize(e)
	}
	w.Header().Set("Content-Type", f.contentType(false))
	buf := f.appendListHead(nil, meta, size)
	for i, e := range items {
		buf = f.appendItem(buf, e, all[i].rv, i == 0)
		if len(buf) >= chunk {
			if _, err := w.Write(buf); err != nil {
				return
			}
			buf = buf[:0]
		}
	}
	_, _ = w.Write(f.appendListTail(buf)) // fails if the client has gone
}

func notAcceptable() error {
	return apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "", schema.GroupResource{}, "",
		"only the following media types are accepted: application/json, application/vnd.kubernetes.protobuf", 0, false)
}

func parseRV(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	rv, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest("Invalid value for resourceVersion: " + text)
	}
	return rv, nil
}

func selectionOf(r *Request, opts *internalversion.ListOptions) *selection {
	sel := &selection{namespace: r.Namespace}
	if opts.LabelSelector != nil && !opts.LabelSelector.Empty() {
		sel.labels = opts.LabelSelector
	}
	if opts.FieldSelector != nil && !opts.FieldSelector.Empty() {
		sel.fields = opts.FieldSelector
	}
	return sel
}

func prefix(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace + "/"
}

// A token is a continue token in kube-apiserver's format, which gateways use too.
type token struct {
	Version string `json:"v"`
	RV      uint64 `json:"rv"`
	Start   string `json:"start"` // the last key of the page, and a zero byte
}

func encodeToken(rv uint64, key string) string {
	return base64.RawURLEncoding.EncodeToString(mustMarshal(token{"meta.k8s.io/v1", rv, key + "\x00"}))
}

func decodeToken(text string) (rv uint64, key string, err error) {
	var t token
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	return t.RV, strings.TrimSuffix(strings.TrimPrefix(t.Start, "/"), "\x00"), err
}
