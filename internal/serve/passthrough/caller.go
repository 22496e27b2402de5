// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package passthrough

import (
	"errors"
	"fmt"
	"maps"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
)

// errNoCaller is the error for a request without a caller in shared mode, which must not
// exist.
var errNoCaller = errors.New("the request has no caller")

// transports returns the transports with the credentials for a request: the caller's
// token, or the impersonation of a caller without one. In local mode callers without
// credentials act as the gateway.
func (p *Handler) transports(r *http.Request) (main, upgrade http.RoundTripper, err error) {
	caller := access.CallerOf(r.Context())
	switch {
	case p.Shared == nil && !request.BringsToken(r.Header):
		return p.Upstream.Transport, p.Upstream.Upgrade, nil
	case p.Shared == nil, caller != nil && caller.HasToken():
		return p.Upstream.CallerTransport, p.Upstream.CallerUpgrade, nil
	case caller == nil || p.Shared.Impersonator == nil:
		return nil, nil, errNoCaller
	}
	as := transport.ImpersonationConfig{
		UserName: caller.User.GetName(), UID: caller.User.GetUID(), Groups: caller.User.GetGroups(), Extra: caller.User.GetExtra(),
	}
	with := p.Shared.Impersonator
	return transport.NewImpersonatingRoundTripper(as, with.Transport), transport.NewImpersonatingRoundTripper(as, with.Upgrade), nil
}

// identify sets the headers that identify the caller in a request to the API server. The
// client may have named them in Connection, so that they are missing in out, or sent
// headers that are for others.
func (p *Handler) identify(in *http.Request, out http.Header) {
	for name, v := range in.Header {
		if request.IsIdentity(name) {
			out[name] = v
		}
	}
	if p.Shared != nil {
		p.identifyCaller(in, out)
	}
}

// identifyCaller leaves of these headers those of the caller in shared mode.
func (p *Handler) identifyCaller(in *http.Request, out http.Header) {
	if !p.AllowPages {
		// It may be the session of a proxy in front, which logs people in. The API server
		// would send it to Pods and aggregated API servers, which could then act as them.
		delete(out, "Cookie")
	}
	for name := range out {
		if name != "Authorization" && p.Shared.IsProxyHeader(name) {
			delete(out, name)
		}
	}
	switch caller := access.CallerOf(in.Context()); {
	case !caller.HasToken():
		none := maps.Clone(request.WithoutCredentials(&http.Request{Header: out}).Header) // which may be out itself
		clear(out)
		maps.Copy(out, none)
	case out.Get("Authorization") != "" || !request.IsUpgrade(in) || !request.BringsTokenProtocol(out):
		// The one that was authenticated, and no other one next to it. A token that is the
		// subprotocol of a WebSocket stays there, unless to the API server it is none: the
		// request is not for a WebSocket, or Connection names the subprotocols.
		out["Authorization"] = []string{"Bearer " + caller.Token}
	}
}

// answerTokenless answers a request of a caller without a token that cannot be passed
// through. It returns false if it can.
func (p *Handler) answerTokenless(w http.ResponseWriter, r *http.Request) bool {
	caller := access.CallerOf(r.Context())
	if p.Shared == nil || caller == nil || caller.HasToken() {
		return false
	}
	refuse := func(s *metav1.Status) bool {
		p.confine(w.Header())
		status.Write(w, r, s)
		return true
	}
	name := caller.User.GetName()
	if access.Impersonates(r.Header) {
		return refuse(status.Forbidden(fmt.Sprintf("user %q is known by a client certificate, and can impersonate others only with a token", name)))
	}
	if p.Shared.Impersonator != nil {
		if why := access.Impersonable(caller.User); why != "" {
			return refuse(status.Forbidden(fmt.Sprintf("user %q %s, and is never impersonated by the gateway: ask the API server itself, or use a token", name, why)))
		}
		return false
	}
	a, err := access.AttributesOf(r, caller.User)
	if err != nil {
		return refuse(status.BadRequest(err.Error()))
	}
	if v := p.Shared.Decide(r.Context(), caller, a); !v.Allowed() {
		return refuse(v.Refusal(a))
	}
	if d := p.document(r); d != nil {
		p.writeDocument(w, d)
		return true
	}
	return refuse(status.Forbidden(fmt.Sprintf("only the API server can answer this, and the gateway has no token of user %q, who is known by a client certificate: "+
		"use a token, or let the gateway's operator set --impersonate", name)))
}
