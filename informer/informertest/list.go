// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
//   - items by key.

// chunk is the minimum size of a write, in bytes.
const chunk = 128 << 10

func (s *Server) serveList(w http.ResponseWriter, r *Request) {
	opts, format, wrong := s.collectionRequest(r)
	if wrong != nil {
		wrong.write(w)
		return
	}
	at, start, all, wrong := s.read(r, opts)
	if wrong != nil {
		wrong.write(w)
		return
	}
	sel := &opts.selection
	all = slices.DeleteFunc(all, func(v version) bool { return !sel.matches(v.Object) || v.Key <= start && start != "" })
	meta := ListMeta{ResourceVersion: strconv.FormatUint(at, 10)}
	if limit := opts.limit; limit > 0 && len(all) > limit && opts.rvText != "0" {
		if sel.isEverything() {
			meta.RemainingItemCount = new(int64(len(all) - limit))
		}
		all = all[:limit]
		meta.Continue = encodeToken(at, strings.TrimPrefix(all[limit-1].Key, prefix(r.Namespace)))
	}
	writeList(w, format, meta, all)
}

// read returns the versions for a list, their resourceVersion, and the key after which
// the list begins.
func (s *Server) read(r *Request, opts *listOptions) (at uint64, start string, all []version, wrong *Status) {
	c, asked := r.collection, opts.rv
	exact := opts.match == matchExact || opts.match == "" && opts.limit > 0 && asked > 0
	if opts.continued != "" {
		if asked > 0 {
			return 0, "", nil, badRequest("specifying resource version is not allowed when using continue")
		}
		var err error
		if asked, start, err = decodeToken(opts.continued); err != nil {
			return 0, "", nil, badRequest("continue key is not valid: %v", err)
		}
		start, exact = prefix(r.Namespace)+start, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case asked > s.rv:
		return 0, "", nil, tooLarge(asked, s.rv)
	case exact && asked < c.compacted && opts.continued != "":
		return 0, "", nil, expired("The provided continue parameter is too old to display a consistent list result.")
	case exact && asked < c.compacted:
		return 0, "", nil, expired("The resourceVersion for the provided list is too old.")
	case exact:
		return asked, start, c.at(asked), nil
	case opts.rvText == "":
		c.progress = s.rv
	}
	return s.rv, "", c.now(), nil
}

func writeList(w http.ResponseWriter, f Format, meta ListMeta, all []version) {
	items, size := make([]*Encoded, len(all)), 0
	for i, v := range all {
		e, err := v.encoding(f, v.rv)
		if err != nil {
			notEncoded(err).write(w)
			return
		}
		items[i] = e
		size += f.ItemSize(e)
	}
	w.Header().Set("Content-Type", f.ContentType(false))
	buf := f.AppendListHead(nil, meta, size)
	for i, e := range items {
		buf = f.AppendItem(buf, e, all[i].rv, i == 0)
		if len(buf) >= chunk {
			if _, err := w.Write(buf); err != nil {
				return
			}
			buf = buf[:0]
		}
	}
	_, _ = w.Write(f.AppendListTail(buf)) // fails if the client has gone
}

// prefix returns the beginning of the keys in a namespace; "" for all.
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
