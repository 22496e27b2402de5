// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// The annotations of an event that are the gateway's own.
const (
	// AnnotationSource is the part of the gateway that answered: cache, history,
	// passthrough, filter, extension or static.
	AnnotationSource = "watchkeeper/source"
	// AnnotationResourceVersion is the RV at which it answered; of a watch, the one at
	// which it began.
	AnnotationResourceVersion = "watchkeeper/resource-version"
)

// kube-apiserver's annotations of a decision, and their values.
const (
	annotationDecision = "authorization.k8s.io/decision"
	annotationReason   = "authorization.k8s.io/reason"

	decisionAllow  = "allow"
	decisionForbid = "forbid"
	reasonError    = "internal error"
)

// ErrNotStored refuses a request in mode blocking-strict; its text is kube-apiserver's.
var ErrNotStored = errors.New("failed to store audit event")

// An Event is one request in the log. The nil Event does nothing.
type Event struct {
	ctx context.Context // has the AuditContext
	ac  *audit.AuditContext
	// longRunning events have the stage ResponseStarted.
	longRunning bool
	// unauthenticated events have that stage only.
	unauthenticated bool
	sensitive       bool // see quotesSecrets
	body            bool // the body of a failure is the API server's

	mu      sync.Mutex // guards the fields below
	code    int        // 0 before the response has begun
	started bool       // the stage ResponseStarted is written
	ended   bool
	failure failure
}

// Begin makes the event of an authenticated request, and writes its stage RequestReceived.
// The request is one of [Auditor.Identify], with the URL that the client sent. stream is set
// for streams of the gateway of which the attributes do not tell; for the others
// they do, as for kube-apiserver. The event is nil if the policy wants none. An error
// refuses the request with 500.
func (a *Auditor) Begin(r *http.Request, attrs authorizer.Attributes, stream bool) (*Event, error) {
	e, err := a.event(r, attrs)
	if e == nil {
		return nil, err
	}
	e.longRunning = stream || isLongRunning(attrs)
	if !e.write(auditinternal.StageRequestReceived) {
		a.refused.Add(1)
		return nil, ErrNotStored
	}
	if u := impersonated(r.Header); u != nil {
		e.ac.LogImpersonatedUser(u, "")
	}
	return e, nil
}

// Unauthenticated makes the event of a request whose authentication has failed. As
// with kube-apiserver it has one stage, ResponseStarted.
func (a *Auditor) Unauthenticated(r *http.Request, attrs authorizer.Attributes) (*Event, error) {
	e, err := a.event(r, attrs)
	if e == nil {
		return nil, err
	}
	e.longRunning, e.unauthenticated = true, true
	return e, nil
}

// event evaluates the policy.
func (a *Auditor) event(r *http.Request, attrs authorizer.Attributes) (*Event, error) {
	if a == nil {
		return nil, nil
	}
	ctx := r.Context()
	ac := audit.AuditContextFrom(ctx)
	if ac == nil {
		return nil, errors.New("the request has no audit ID")
	}
	config := a.policy.EvaluatePolicyRule(attrs)
	if err := ac.Init(config, a.backend); err != nil {
		return nil, err
	}
	if config.Level == auditinternal.LevelNone {
		return nil, nil
	}
	received, _ := apirequest.ReceivedTimestampFrom(ctx)
	audit.LogRequestMetadata(ctx, recorded(r), received, bounded(attrs))
	return &Event{ctx: ctx, ac: ac, sensitive: quotesSecrets(attrs), body: !isProxied(attrs)}, nil
}

// write writes a stage unless the policy omits it. It is false if the request has to
// be refused.
func (e *Event) write(stage auditinternal.Stage) bool { return e.ac.ProcessEventStage(e.ctx, stage) }

// Annotate adds an annotation; the first value of a key stays.
func (e *Event) Annotate(key, value string) {
	if e != nil {
		audit.AddAuditAnnotation(e.ctx, key, value)
	}
}

// Answered annotates which part of the gateway answers, and from which RV; 0 for none.
func (e *Event) Answered(source string, rv uint64) {
	if e == nil {
		return
	}
	e.Annotate(AnnotationSource, source)
	if rv != 0 {
		e.Annotate(AnnotationResourceVersion, strconv.FormatUint(rv, 10))
	}
}

// Decided annotates a decision with kube-apiserver's annotations.
func (e *Event) Decided(d authorizer.Decision, reason string, err error) {
	switch {
	case e == nil:
	case d == authorizer.DecisionAllow:
		audit.AddAuditAnnotations(e.ctx, annotationDecision, decisionAllow, annotationReason, reason)
	case err != nil:
		audit.AddAuditAnnotation(e.ctx, annotationReason, reasonError)
	default:
		audit.AddAuditAnnotations(e.ctx, annotationDecision, decisionForbid, annotationReason, reason)
	}
}

// ResponseStarted sets the status code of the response, and writes the stage of a
// long-running request. That of a failure is written with its Status, by Complete. Further
// calls do nothing. A [Event.ResponseWriter] calls it.
func (e *Event) ResponseStarted(code int) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.code != 0 || e.ended {
		return
	}
	e.code = code
	e.ac.SetEventResponseStatusCode(int32(code)) //nolint:gosec // three digits
	if code < http.StatusBadRequest {
		e.startLocked()
	}
}

func (e *Event) startLocked() {
	if e.longRunning && !e.started {
		e.started = true
		e.write(auditinternal.StageResponseStarted)
	}
}

// Complete ends the event with the response. Further calls do nothing.
func (e *Event) Complete() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	e.ended = true
	if s := e.failure.status(); s != nil {
		if s.Code = int32(e.code); e.sensitive && !namesOnly(e.code) { //nolint:gosec // three digits
			s.Message, s.Details = "", nil
		}
		e.ac.LogResponseObject(s, nil)
	}
	if e.code == 0 { // as kube-apiserver has it
		e.ac.SetEventResponseStatus(&metav1.Status{Code: http.StatusOK, Status: metav1.StatusSuccess, Message: "Connection closed early"})
	}
	e.startLocked()
	if !e.unauthenticated {
		e.write(auditinternal.StageResponseComplete)
	}
}

// Panic ends the event of a request whose handler panicked. It completes one that
// was aborted.
func (e *Event) Panic(value any) {
	if e == nil {
		return
	}
	if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		e.Complete()
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	e.ended = true
	e.ac.SetEventResponseStatus(&metav1.Status{
		Code: http.StatusInternalServerError, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
		Message: fmt.Sprintf("APIServer panic'd: %v", value),
	})
	e.write(auditinternal.StagePanic)
}

// End is Complete, or Panic if the caller panics, which goes on. It has to be deferred
// itself: recover works only there.
func (e *Event) End() {
	if v := recover(); v != nil {
		e.Panic(v)
		panic(v)
	}
	e.Complete()
}
