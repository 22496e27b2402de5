// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"errors"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

// ErrPassThrough: the request is no LIST, GET or WATCH of a resource, or it is not
// understood in full. The API server answers it.
var ErrPassThrough = errors.New("not a read that is understood here")

// A Read is a LIST, GET or WATCH. It is immutable.
type Read struct {
	Target
	// Options are the options of a LIST or WATCH. A GET has only ResourceVersion.
	Options internalversion.ListOptions
	// RV is Options.ResourceVersion as a number; 0 if it is unset.
	RV uint64
	// WebSocket is set for a WATCH over a WebSocket.
	WebSocket bool
	// Fields are the fields of a projection; nil for whole objects.
	Fields *scan.Paths
	// File is set for a projection as a file. The columns are those of Fields.
	File wire.File
	// Changes asks for the rows of a list as what differs from the row before.
	Changes bool
	// Speed is the speed of a replay as a multiple of real time; 0 for no replay.
	Speed float64
	// Times is set for a WATCH that sends the time of each event in a bookmark after it.
	Times bool
}

// Parse reads a request. The error is [ErrPassThrough], or a *status.Error if one of
// Watchkeeper's own parameters (fields, speed, times) cannot be served: the API server would
// ignore the parameter.
func Parse(r *http.Request) (*Read, error) {
	rd, ok := parse(r)
	if !ok {
		rd = nil
	}
	err := parseFields(r, rd)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, ErrPassThrough
	}
	if rd.Verb != Watch {
		return rd, nil
	}
	if rd.Speed, err = parseSpeed(r); err != nil {
		return rd, err
	}
	rd.Times, err = parseTimes(r, rd.Options.AllowWatchBookmarks)
	return rd, err
}

// parse reads the parts of a request that Kubernetes defines. It returns false if it
// does not understand all of them.
func parse(r *http.Request) (*Read, bool) {
	if r.Method != http.MethodGet || BringsIdentity(r.Header) {
		return nil, false
	}
	if r.URL.EscapedPath() != r.URL.Path {
		return nil, false // no resource, namespace or name needs an escape
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, false
	}
	target, ok := ParsePath(r.URL.Path)
	if !ok {
		return nil, false
	}
	rd := &Read{Target: target}
	if rd.Verb == List && IsTrue(r, "watch") {
		rd.Verb = Watch
	}
	if IsUpgrade(r) {
		if rd.WebSocket = IsWebSocket(r); !rd.WebSocket || rd.Verb != Watch || BringsToken(r.Header) {
			return nil, false
		}
	}
	for _, name := range []string{"export", "shardSelector"} {
		if query.Get(name) != "" {
			return nil, false
		}
	}
	if rd.Verb != Watch && query.Has("timeout") {
		return nil, false
	}
	if rd.Verb == Get {
		// A GET has no other option. A malformed RV is passed through, because the
		// API server treats it differently than that of a LIST.
		rd.Options.ResourceVersion = query.Get("resourceVersion")
		return rd, rd.parseRV()
	}
	if err := internalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &rd.Options); err != nil {
		return nil, false
	}
	// A /watch/ path is validated and defaulted as a list unless it also says
	// watch=true.
	internalversion.SetListOptionsDefaults(&rd.Options, true)
	if len(validation.ValidateListOptions(&rd.Options, true)) > 0 {
		return nil, false
	}
	return rd, rd.parseRV()
}

// parseRV reads the RV. It returns false for an RV that is not in canonical form, such
// as 00: the API server rejects it or gives it another meaning.
func (rd *Read) parseRV() bool {
	text := rd.Options.ResourceVersion
	var err error
	rd.RV, err = kube.ParseRV(text)
	return err == nil && (text == "" || text == kube.FormatRV(rd.RV))
}

// AnyVersion returns the read with RV 0 instead of an unset one, and without its limit,
// as the API server reads RV 0, for a store that does not change: it needs no proof of
// freshness.
func (rd *Read) AnyVersion() *Read {
	if rd.Options.ResourceVersion != "" || rd.Options.Continue != "" {
		return rd
	}
	latest := *rd
	latest.Options.ResourceVersion, latest.Options.Limit = "0", 0
	return &latest
}

// SendsInitialEvents reports whether a WATCH begins with the state (KEP-3157).
func (rd *Read) SendsInitialEvents() bool {
	return rd.Options.SendInitialEvents != nil && *rd.Options.SendInitialEvents
}

// IsLegacyWatch reports whether a WATCH on a deprecated /watch/ path begins with
// the state, without a bookmark at its end.
func (rd *Read) IsLegacyWatch() bool {
	return rd.WatchPath && rd.RV == 0 && rd.Options.SendInitialEvents == nil
}

// IsSelective reports whether the request has selectors. A list with selectors has no
// remainingItemCount.
func (rd *Read) IsSelective() bool {
	return rd.Options.LabelSelector != nil && !rd.Options.LabelSelector.Empty() ||
		rd.Options.FieldSelector != nil && !rd.Options.FieldSelector.Empty()
}
