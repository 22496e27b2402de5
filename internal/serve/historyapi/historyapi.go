// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package historyapi serves /watchkeeper/v1/history: which objects changed, when, and
// by which client, from the recorded history. docs/extensions.md and openapi.json
// describe the API.
//
// Each endpoint is a method of [call] in its own file. Package past maps moments
// to states; package access decides which callers may read which resources.
package historyapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/record/past"
	"github.com/watchkeeper/watchkeeper/internal/record/recording"
	"github.com/watchkeeper/watchkeeper/internal/serve/httpstream"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

const (
	// Path is the root of the history API.
	Path = "/watchkeeper/v1/history"
	// openAPIPath serves the description of the API.
	openAPIPath = "/watchkeeper/v1/openapi.json"
	// exportName is the path of exports below Path.
	exportName = "/export"
)

// A RecordingState says whether the history is being recorded.
type RecordingState struct {
	State  string // one of the api.Recording constants
	Reason string // why it is not; "" if it is
	Scope  *recording.Scope
}

// A Handler serves [Path], [StoryPath], the paths below them, and [FindingsPath]. Its fields
// are set before the first use.
type Handler struct {
	Past     *past.Past // nil if nothing is recorded
	Access   *access.Past
	Upstream *upstream.Server
	// Documents are the API server's last answers, for an export while it gives none; nil
	// for none.
	Documents *upstream.Documents
	// Recording returns the current state of recording.
	Recording func() RecordingState
	// Filter returns why a path of the Kubernetes API may not be read, nil if it may.
	Filter func(*http.Request) *metav1.Status
	// Live returns the state of a resource now while it is not recorded; nil if it is not
	// known. A nil function knows of none.
	Live func(context.Context, kube.Resource) *timeline.Snapshot
	// Users bound what each user takes in shared mode; nil bounds nothing.
	Users *fairness.Users

	exports *past.Limiter
}

// New returns a handler; see the fields of [Handler].
func New(h Handler) *Handler {
	h.exports = past.NewLimiter("export", maxExports, 0)
	if h.Users != nil {
		h.exports.PerUser(h.Users, "exports")
	}
	return &h
}

// Limiters returns the limiters of expensive answers.
func (h *Handler) Limiters() []*past.Limiter { return []*past.Limiter{h.Past.Lists, h.exports} }

// A call is one request.
type call struct {
	*Handler
	r       *http.Request
	store   *history.Store
	query   url.Values
	now     time.Time
	contact upstream.Contact // up to the end of the request's range
	// path is the Kubernetes API path that follows the endpoint's name; "" for none.
	path string
	// cluster has which resources have no namespaces, of those that [call.resources] returned.
	cluster map[kube.Resource]bool
	// denied are the names of the recorded resources that [call.resources] has left out, since
	// the caller may not list them.
	denied []string
	// release frees the slot of a large page, if it has one. It may be called twice.
	release func()
	// unsynced has why the events that the gateway has seen of a resource are not recorded, nil
	// if they are, of those of which [call.sync] has found it out.
	unsynced map[kube.Resource]error
}

func refuse(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &status.Error{Status: status.New(code, reason, fmt.Sprintf(format, args...))}
}

func refuseBad(format string, args ...any) error {
	return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, format, args...)
}

// An endpoint is one endpoint of the history API.
type endpoint struct {
	// serve returns the answer: an http.Handler, or a value that is encoded as JSON.
	serve      func(*call) (any, error)
	parameters []string
	// renamed is set if since and until were once from and to.
	renamed bool
	// object is set if the path of a resource or an object follows the name.
	object bool
}

// endpoints has the endpoints by their path below Path; [FindingsPath] is not below it.
var endpoints = map[string]endpoint{
	"":           {serve: (*call).index, parameters: []string{"namespace"}},
	"/versions":  {serve: (*call).versions, parameters: []string{"since", "until", "limit", "continue", "noise", "objects"}, object: true},
	"/diff":      {serve: (*call).diff, parameters: []string{"from", "to", "labelSelector", "fieldSelector", "limit", "continue", "noise", "objects", "fields", "as", "repeated"}, object: true},
	"/failing":   {serve: (*call).failing, parameters: []string{"at"}, object: true},
	"/counts":    {serve: (*call).counts, parameters: []string{"since", "until", "bin", "resource", "namespace", "filter", "type"}, renamed: true},
	exportName:   {serve: (*call).export, parameters: []string{"since", "until", "resource", "namespace", "labelSelector", "pseudonyms"}, renamed: true},
	FindingsPath: {serve: (*call).findings, parameters: []string{"at", "namespace"}},
	storyName:    {serve: (*call).story, parameters: []string{"since", "until"}, object: true},
	"/changes":   {serve: (*call).changes, parameters: []string{"since", "until", "resource", "namespace", "filter", "type", "by", "spec", "limit", "continue", "noise", "objects"}, renamed: true},
}

// repeatable are the parameters that may be given several times.
var repeatable = []string{"resource", "type", "fields"}

// renamed are the former names of parameters, which are still accepted.
var renamed = map[string]string{"from": "since", "to": "until"}

// begins are the parameters that name a moment or the begin of a range, not its end.
var begins = []string{"from", "since", "at"}

// Parameters returns the query parameters of the endpoints, by their path.
func Parameters() map[string][]string {
	all := map[string][]string{}
	for name, e := range endpoints {
		path := Path + name
		switch name {
		case storyName:
			path = StoryPath
		case FindingsPath:
			path = name
		}
		all[path] = slices.Clone(e.parameters)
	}
	return all
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := h.Past.Present()
	contact := h.contact(r, now)
	begin := h.Users.Call
	if name, _ := cutPath(r.URL.Path); name == exportName {
		begin = h.beginExport
	}
	answered, end, err := begin(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	defer end()
	warnSilence(w.Header(), r, contact)
	c := &call{Handler: h, r: r, now: now, contact: contact, store: h.Past.Store(), unsynced: map[kube.Resource]error{}, release: func() {}}
	defer func() { c.release() }()
	answer, err := c.answer()
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if answerer, ok := answer.(http.Handler); ok {
		answered()
		answerer.ServeHTTP(w, r)
	} else {
		writeJSON(w, r, answer, func() { answered(); c.release() })
	}
}

// fail answers with the Status for an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	refusal := h.Past.Refusal(err)
	if refusal.Code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", "GET")
	}
	status.Write(w, r, refusal)
}

// writeJSON answers with a value, which is encoded when encoded is called.
func writeJSON(w http.ResponseWriter, r *http.Request, answer any, encoded func()) {
	body, err := json.Marshal(answer)
	if status.WantsPretty(r) && err == nil {
		body, err = wire.Indent(body)
	}
	if err != nil {
		status.Write(w, r, status.New(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error()))
		return
	}
	encoded()
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	out := httpstream.NewDeadlineWriter(w, httpstream.WriteTimeout)
	defer out.Clear()
	_, _ = out.Write(body) // an error means that the client is gone
}

// answer returns the answer to the request.
func (c *call) answer() (any, error) {
	r := c.r
	name, path := cutPath(r.URL.Path)
	e, ok := endpoints[name]
	switch {
	case !ok, e.object == (path == ""):
		return nil, refuse(http.StatusNotFound, metav1.StatusReasonNotFound,
			"there is nothing at %s: see %s for the paths of the history API", r.URL.Path, openAPIPath)
	case r.Method != http.MethodGet || request.IsUpgrade(r):
		return nil, &status.Error{Status: status.MethodNotAllowed()}
	}
	free := []string{"pretty"}
	for _, parameter := range repeatable {
		if slices.Contains(e.parameters, parameter) {
			free = append(free, parameter)
		}
	}
	names := e.parameters
	if e.renamed {
		names = slices.Concat(names, slices.Sorted(maps.Keys(renamed)))
	}
	query, err := request.Parameters(r, names, free...)
	if err != nil {
		return nil, err
	}
	for old, name := range renamed {
		if e.renamed && query.Has(old) {
			if query.Has(name) {
				return nil, refuseBad("%s and %s are the same parameter: give one of them", name, old)
			}
			query[name] = query[old]
			query.Del(old)
		}
	}
	c.query, c.path = query, path
	if c.store == nil && name != "" {
		state := c.Recording()
		if state.State == api.RecordingOff {
			return nil, refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "nothing is recorded: give watchkeeper serve a --data-dir")
		}
		if name != FindingsPath {
			return nil, &status.Error{Status: status.Unavailable("the history is not open: "+cmp.Or(state.Reason, "it is being opened"), true)}
		}
		c.store = new(history.Store) // without a record, the findings are those of the cache
	}
	namespace := query.Get("namespace")
	if target, ok := request.ParsePath(path); ok {
		namespace = target.Namespace
	}
	if err := c.Past.Outside(namespace); err != nil && name != "" { // the index has what is in no namespace, too
		return nil, err
	}
	if !e.object {
		if refusal := c.Access.Unauthorized(r); refusal != nil {
			return nil, &status.Error{Status: refusal}
		}
	}
	return e.serve(c)
}

// cutPath splits a path into the name of the endpoint and the Kubernetes API path
// that follows it.
func cutPath(path string) (name, rest string) {
	if rest, ok := strings.CutPrefix(path, StoryPath); ok {
		return storyName, rest
	}
	path = strings.TrimPrefix(path, Path)
	for name, e := range endpoints {
		if e.object && name != storyName {
			if rest, ok := strings.CutPrefix(path, name+"/"); ok {
				return name, "/" + rest
			}
		}
	}
	return strings.TrimSuffix(path, "/"), ""
}

// limit returns the largest number of items on a page.
func (c *call) limit() (int, error) {
	text := c.query.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, refuseBad("limit is %q: it has to be from 1 to %d", text, maxLimit)
	}
	return n, nil
}

// noise reports whether the request asks for noise.
func (c *call) noise() (bool, error) {
	switch text := c.query.Get("noise"); text {
	case "", "fold":
		return false, nil
	case "show":
		return true, nil
	default:
		return false, refuseBad("noise is %q: it has to be fold or show", text)
	}
}

// flag reads a parameter that is true or false; it is false without the parameter.
func (c *call) flag(parameter string) (bool, error) {
	switch text := c.query.Get(parameter); text {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, refuseBad("%s is %q: it has to be true or false", parameter, text)
	}
}

// when returns the moment that a parameter names. Without the parameter it is the
// moment usual; the zero moment if usual is "".
func (c *call) when(parameter, usual string) (kube.Moment, error) {
	text := c.query.Get(parameter)
	if text == "" {
		if text = usual; text == "" {
			return kube.Moment{}, nil
		}
	}
	when, err := request.ParseMoment(text, c.now)
	if i := strings.LastIndexByte(text, ' '); i >= 0 && err != nil {
		// A client that did not escape the plus of a time zone sent a space.
		if plus, err := request.ParseMoment(text[:i]+"+"+text[i+1:], c.now); err == nil {
			return plus, nil
		}
	}
	if err != nil {
		return when, refuseBad("%s: %v", parameter, err)
	}
	if slices.Contains(begins, parameter) { // a range may extend beyond what is recorded
		return when, c.Past.Reached(when)
	}
	return when, nil
}
