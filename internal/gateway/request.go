// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A readVerb is what a request does, as RBAC calls it.
type readVerb string

const (
	verbGet   readVerb = "get"
	verbList  readVerb = "list"
	verbWatch readVerb = "watch"
)

// A target is what the path of a read names (spec §1).
type target struct {
	verb      readVerb
	resource  kube.Resource
	namespace string // "" for all namespaces, or a cluster-scoped resource
	name      string // "" for a collection
	// watchPath is set for the deprecated /watch/ paths.
	watchPath bool
}

// A read is a LIST, GET or WATCH that the cache may be able to answer.
type read struct {
	target
	opts  internalversion.ListOptions
	rv    uint64 // opts.ResourceVersion
	match filterFunc
	// attribute is one that all objects have that match; nil if there is none.
	attribute *timeline.Attribute
	// narrowed is set when metadata.namespace in the field selector made the
	// scope of the request smaller.
	narrowed bool

	key       kube.Key // the only object that can match; "" if several can
	websocket bool     // a WATCH over a WebSocket
	form      wire.Form
	// fields are those of a projection; nil shows all.
	fields *scan.Paths
	// speed is that of a replay; 0 is none.
	speed float64
	// refusal is why a projection is not served.
	refusal *metav1.Status
	// plainStatus is set when a Status, too, is to be answered in plain JSON.
	plainStatus bool
	// warnings are what the API server says about the resource's version.
	warnings []string
	// awaited is set when others wait for what the answer holds.
	awaited bool
	// over, of a WATCH, is closed when it is to end early.
	over <-chan struct{}
}

// parseRead reads a request. It returns false for what is not a read, for a GET
// with RV unset, and for whatever is not wholly understood: the API server answers
// that.
func parseRead(r *http.Request) (*read, bool) {
	rd, ok := parseAnyRead(r)
	return rd, ok && (rd.verb != verbGet || rd.opts.ResourceVersion != "")
}

// parseAnyRead is parseRead without an exception for GET.
func parseAnyRead(r *http.Request) (*read, bool) {
	if r.Method != http.MethodGet || bringsIdentity(r.Header) {
		return nil, false
	}
	if r.URL.EscapedPath() != r.URL.Path {
		return nil, false // no resource, namespace or name needs an escape
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, false
	}
	tgt, ok := parsePath(r.URL.Path)
	if !ok {
		return nil, false
	}
	rd := &read{target: tgt}
	if rd.verb == verbList && truthy(r, "watch") {
		rd.verb = verbWatch
	}
	if isUpgrade(r) {
		if rd.websocket = isWebSocket(r); !rd.websocket || rd.verb != verbWatch || bringsToken(r.Header) {
			return nil, false
		}
	}
	for _, name := range []string{"export", "shardSelector"} {
		if query.Get(name) != "" {
			return nil, false
		}
	}
	if rd.verb != verbWatch && query.Has("timeout") {
		return nil, false
	}
	if rd.verb == verbGet {
		// GET knows the RV only; it reads malformed ones its own way.
		rd.opts.ResourceVersion = query.Get("resourceVersion")
		return rd, rd.version()
	}
	if err := internalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &rd.opts); err != nil {
		return nil, false
	}
	// A /watch/ path is validated and defaulted as a list unless it also says
	// watch=true.
	internalversion.SetListOptionsDefaults(&rd.opts, true)
	if len(validation.ValidateListOptions(&rd.opts, true)) > 0 {
		return nil, false
	}
	return rd, rd.version()
}

// version reads the RV. One that is not in canonical form, such as 00, is
// malformed or has a meaning of its own at the API server.
func (rd *read) version() bool {
	text := rd.opts.ResourceVersion
	var err error
	rd.rv, err = kube.ParseRV(text)
	return err == nil && (text == "" || text == kube.FormatRV(rd.rv))
}

// negotiate chooses the form of the answer. It returns false where the API
// server has to be asked, or has an error for the request.
func (rd *read) negotiate(r *http.Request, typed bool, cbor func() bool) bool {
	if rd.fields != nil {
		rd.form = wire.Form{Fields: rd.fields, Pretty: rd.verb != verbWatch && wantsPretty(r)}
		rd.plainStatus = true
		return true
	}
	var ok bool
	offer := wire.Offer{Watch: rd.verb == verbWatch, List: rd.verb == verbList, Typed: typed, CBOR: cbor}
	if rd.form, ok = wire.Negotiate(r.Header.Get("Accept"), offer); !ok {
		return false
	}
	offer.Typed = true // as a Status is
	status, ok := wire.Negotiate(r.Header.Get("Accept"), offer)
	rd.plainStatus = ok && status.Media == wire.JSON && status.View == wire.Whole
	rd.form.Pretty = rd.verb != verbWatch && rd.form.Media == wire.JSON && (rd.form.Pretty || wantsPretty(r))
	if rd.form.View != wire.Table {
		return true
	}
	switch rd.form.Include = wire.Include(r.URL.Query().Get("includeObject")); rd.form.Include {
	case "":
		rd.form.Include = wire.IncludeMetadata
	case wire.IncludeMetadata, wire.IncludeObject, wire.IncludeNone:
	default:
		return false
	}
	return true
}

// bringsIdentity reports whether the caller asks to be somebody: what they
// may read is then for the API server to say (T8).
func bringsIdentity(h http.Header) bool {
	for name := range h {
		if isIdentity(name) {
			return true
		}
	}
	return false
}

func isIdentity(name string) bool {
	return name == "Authorization" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-")
}

// longestName is how long the name of a group, a version or a resource can be:
// they are DNS names. Longer ones would have to be remembered as unknown (T10).
const longestName = 253

// parsePath reads the path of a GET request.
func parsePath(path string) (target, bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	for _, p := range parts {
		if p == "" || p == "." || p == ".." {
			return target{}, false
		}
	}
	var t target
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.resource.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.resource.Group, t.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return target{}, false
	}
	if len(parts) > 1 && parts[0] == "watch" {
		t.watchPath, parts = true, parts[1:]
	}
	// "namespaces" is a resource and a prefix: namespaces/NAME/status and
	// /finalize are subresources, any other tail is a namespaced resource.
	if len(parts) > 2 && parts[0] == "namespaces" {
		if parts[2] == "status" || parts[2] == "finalize" {
			return target{}, false
		}
		t.namespace, parts = parts[1], parts[2:]
	}
	switch len(parts) {
	case 1:
		t.verb = verbList
	case 2:
		t.verb, t.name = verbGet, parts[1]
	default:
		return target{}, false // a subresource
	}
	t.resource.Name = parts[0]
	if max(len(t.resource.Group), len(t.resource.Version), len(t.resource.Name)) > longestName {
		return target{}, false
	}
	if t.watchPath {
		t.verb = verbWatch
	}
	return t, true
}

// standStill makes the read one of any version: where nothing changes, there is
// nothing newer, and nothing to prove.
func (rd *read) standStill() {
	if rd.opts.ResourceVersion == "" && rd.opts.Continue == "" {
		rd.opts.ResourceVersion, rd.opts.Limit = "0", 0
	}
}
