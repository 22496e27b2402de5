// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
)

// In shared mode every request has a caller, and is answered in one of three ways:
//
//   - from the cache or the history, if the API server allows the caller to read it;
//   - by the API server, with the caller's own credentials;
//   - with a refusal of the gateway, where the API server has no answer of its own: for
//     the gateway's extensions, and for callers whose credentials it cannot forward.
//
// The gateway's identity never answers for a caller.

// authenticate returns the request with its caller, and begins its audit event. It returns
// nil if it has answered the request with an error.
func (g *Gateway) authenticate(rec *responseRecorder, r *http.Request) *http.Request {
	r = g.audit.Identify(rec, r)
	caller, err := g.shared.Authenticate(r)
	if err != nil {
		if g.audit != nil {
			e, _ := g.audit.Unauthenticated(r, g.audited(r, nil))
			rec.auditBy(e, r)
		}
		// As in the API server, the client has to connect again: a certificate is part of a
		// connection, and this one may be from before the cluster's CAs were known, so that
		// the client was asked for none. But a browser has one connection for all requests of
		// the page, and those in flight would be lost, before and after a login.
		if errors.Is(err, access.ErrUnauthenticated) && r.Header.Get("Sec-Fetch-Site") == "" {
			rec.Header().Set("Connection", "close")
		}
		status.Write(rec, r, access.Refused(err))
		return nil
	}
	u := fairness.UserNamed(caller.User.GetName())
	g.users.Seen(u)
	r = access.WithCaller(r.WithContext(fairness.WithUser(r.Context(), u)), caller)
	rec.request = r
	return g.beginAudit(rec, r, caller)
}

// beginAudit begins the audit event of a request. It returns nil if it has answered the
// request with an error.
func (g *Gateway) beginAudit(rec *responseRecorder, r *http.Request, caller *access.Caller) *http.Request {
	if g.audit == nil {
		return r
	}
	// A multiwatch may also be below --api-prefix.
	e, err := g.audit.Begin(r, g.audited(r, caller), strings.HasSuffix(r.URL.Path, multiwatchPath))
	if err != nil {
		status.Write(rec, r, status.Internal("the request cannot be recorded in the audit log: "+err.Error()))
		return nil
	}
	rec.auditBy(e, r)
	return r
}

// audited returns the attributes of a request for the audit policy. A read of the past has
// those of the same read now.
func (g *Gateway) audited(r *http.Request, caller *access.Caller) *authorizer.AttributesRecord {
	if g.stripsPrefix() && isBelow(r.URL.Path, strings.TrimSuffix(g.apiPrefix, "/")) {
		r = stripPrefix(r, g.apiPrefix)
	}
	if request.IsAt(r.URL.Path) {
		if _, inner, _ := request.CutAt(r, time.Now()); inner != nil {
			r = inner
		}
	}
	var u user.Info
	if caller != nil {
		u = caller.User
	}
	a, err := access.AttributesOf(r, u)
	if err != nil {
		a = access.PathAttributes(u, r.URL.Path)
	}
	return a
}

// auditBy makes an audit event, which may be nil, follow the response.
func (rec *responseRecorder) auditBy(e *audit.Event, r *http.Request) {
	rec.event, rec.ResponseWriter = e, e.ResponseWriter(rec.ResponseWriter, r)
}

// endAudit ends the audit event of a request whose handler has ended. It has to be deferred
// itself: recover works only there.
func (rec *responseRecorder) endAudit() {
	if v := recover(); v != nil {
		rec.event.Panic(v)
		panic(v)
	}
	if rec.stream == nil { // otherwise the watch ends it
		rec.event.Complete()
	}
}

// answerCaller answers a request of a caller for the API.
func (g *Gateway) answerCaller(rec *responseRecorder, r *http.Request, caller *access.Caller) {
	plain := request.WithoutCredentials(r)
	if !g.shared.Forwards(caller) {
		plain = withoutTimeout(plain)
	}
	extension := request.IsExtension(r) || isInner(r)
	if refusal := tooLong(r); refusal != nil {
		if extension {
			status.Write(rec, r, refusal)
		} else {
			g.passThrough(rec, r)
		}
		return
	}
	read, err := request.Parse(plain)
	switch {
	case access.Impersonates(r.Header):
		// The API server judges who may be impersonated.
		if extension {
			status.Write(rec, r, noImpersonation())
			return
		}
		g.passThrough(rec, r)
		return
	case err != nil && !extension, err == nil && !extension && isPlainGet(read) && g.shared.Forwards(caller):
		g.passThrough(rec, r)
		return
	}
	a, invalid := access.AttributesOf(plain, caller.User)
	if invalid != nil || read != nil && !access.Agrees(a, read.Target) {
		g.passThrough(rec, r)
		return
	}
	v := g.shared.Decide(r.Context(), caller, a)
	if !v.Allowed() {
		if extension {
			rec.decided(v)
			status.Write(rec, r, v.Refusal(a))
			return
		}
		g.passThrough(rec, r)
		return
	}
	rec.decided(v)
	if a.Verb == string(request.Watch) {
		if refusal := g.permit(rec, plain, caller, a); refusal != nil {
			status.Write(rec, r, refusal)
			return
		}
		defer rec.release()
	}
	g.answerRead(rec, plain, r, func(rec *responseRecorder, r *http.Request) *decline { return g.reads.serveParsed(rec, r, read, err) })
}

// maxRead bounds the path and query of a read that the gateway answers, in bytes. A watch
// keeps what was parsed of them, which takes several times as much, and a user may have
// thousands of watches.
const maxRead = 4 << 10

// tooLong returns why the gateway does not answer a read, nil if its URL is not too long.
func tooLong(r *http.Request) *metav1.Status {
	if n := len(r.URL.Path) + len(r.URL.RawQuery); n > maxRead {
		return status.BadRequest(fmt.Sprintf("the path and the query have %d bytes: the gateway itself answers those of up to %d", n, maxRead))
	}
	return nil
}

// withoutTimeout returns a request without the parameter timeout of kubectl's
// --request-timeout, which the cache leaves to the API server.
func withoutTimeout(r *http.Request) *http.Request {
	query := r.URL.Query()
	if !query.Has("timeout") {
		return r
	}
	query.Del("timeout")
	r = r.WithContext(r.Context())
	u := *r.URL
	u.RawQuery = query.Encode()
	r.URL = &u
	return r
}

// isPlainGet reports whether a read is a GET of the newest version, which the cache does
// not answer.
func isPlainGet(read *request.Read) bool {
	return read.Verb == request.Get && read.Options.ResourceVersion == ""
}

// permit opens the permit and the stream of a watch that may be served. It returns why not
// if the user has too many.
func (g *Gateway) permit(rec *responseRecorder, r *http.Request, caller *access.Caller, all ...*authorizer.AttributesRecord) *metav1.Status {
	if refusal := g.openStream(rec, r); refusal != nil {
		return refusal
	}
	rec.permit = g.shared.Permits.Open(caller, all...)
	return nil
}

// release closes the permit and the stream of a watch that was not served.
func (rec *responseRecorder) release() {
	if rec.permitted {
		return
	}
	if rec.permit != nil {
		rec.permit.Close()
		rec.permit = nil
	}
	if rec.closeStream != nil {
		rec.closeStream()
		rec.closeStream = nil
	}
}

// bind makes a watch end with its permit.
func (rec *responseRecorder) bind(s *httpstream.Watch) {
	if rec.permit != nil {
		rec.permitted = true
		rec.permit.OnEnd(s.Wake, s.Abort)
		s.Revoked, s.Owner = rec.permit.Ended(), permittedOwner{s.Owner, rec.permit, rec.closeStream, rec.event}
	}
}

// decided records a decision of the API server in the audit event.
func (rec *responseRecorder) decided(v access.Verdict) {
	switch v.Decision {
	case upstream.Allowed:
		rec.event.Decided(authorizer.DecisionAllow, v.Reason, nil)
	case upstream.Denied:
		rec.event.Decided(authorizer.DecisionNoOpinion, v.Reason, nil)
	default:
		rec.event.Decided(authorizer.DecisionNoOpinion, "", errors.New(v.Reason))
	}
}

// A permittedOwner closes the permit and the stream of a watch when the watch ends, and
// ends its audit event.
type permittedOwner struct {
	httpstream.Owner
	permit      *access.Permit
	closeStream func()
	event       *audit.Event
}

func (o permittedOwner) CloseWatch() {
	o.permit.Close()
	o.closeStream()
	o.event.Complete()
	o.Owner.CloseWatch()
}

// innerKey marks the request of a watch that is a part of a multiwatch.
type innerKey struct{}

func isInner(r *http.Request) bool { return r.Context().Value(innerKey{}) != nil }
