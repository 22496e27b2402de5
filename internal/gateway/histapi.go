// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/recording"
)

// A historyAPI serves historyPath and what is below it: what changed, when, and
// by whom, from what is recorded. docs/extensions.md and openapi.json describe
// it.
type historyAPI struct {
	source     archive
	up         *Upstream
	disclosure *disclosure
	filter     *filter
	exports    *places
}

// A historyCall is one request to it.
type historyCall struct {
	*historyAPI
	r     *http.Request
	store *history.Store
	query url.Values
	now   time.Time
	// path is that of the API behind the name of what is asked for, "" for none.
	path string
}

// A refusedCall is why a call has no answer.
type refusedCall struct{ status *metav1.Status }

func (e *refusedCall) Error() string { return e.status.Message }

func refuse(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &refusedCall{newStatus(code, reason, fmt.Sprintf(format, args...))}
}

func refuseBad(format string, args ...any) error {
	return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, format, args...)
}

// An endpoint is one of the API's.
type endpoint struct {
	// serve returns the answer: an http.Handler, or what is encoded as JSON.
	serve      func(*historyCall) (any, error)
	parameters []string
	// object is set when the path of an API follows.
	object bool
}

// historyEndpoints are the API's, by what follows historyPath.
var historyEndpoints = map[string]endpoint{
	"":          {serve: (*historyCall).index},
	"/versions": {serve: (*historyCall).versions, parameters: []string{"since", "until", "limit", "continue", "noise", "objects"}, object: true},
	"/diff":     {serve: (*historyCall).diff, parameters: []string{"from", "to", "labelSelector", "fieldSelector", "limit", "continue", "noise", "objects"}, object: true},
	"/counts":   {serve: (*historyCall).counts, parameters: []string{"from", "to", "bin", "resource"}},
	"/export":   {serve: (*historyCall).export, parameters: []string{"from", "to", "resource", "namespace", "labelSelector", "pseudonyms"}},
	"/changes":  {serve: (*historyCall).changes, parameters: []string{"from", "to", "resource", "namespace", "limit", "continue", "noise", "objects"}},
}

func (a *historyAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := a.answer(r)
	if err != nil {
		status := historyStatus(err)
		if status.Code == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET")
		}
		writeStatus(w, r, status)
		return
	}
	if h, ok := answer.(http.Handler); ok {
		h.ServeHTTP(w, r)
	} else {
		writeJSON(w, r, answer)
	}
}

// historyStatus is the Status for an error of the history.
func historyStatus(err error) *metav1.Status {
	if refused, ok := errors.AsType[*refusedCall](err); ok {
		return refused.status
	}
	switch {
	case errors.Is(err, history.ErrFuture):
		return badRequest(err.Error())
	case errors.Is(err, history.ErrBefore), errors.Is(err, history.ErrGap):
		return expiredFor(err.Error())
	case errors.Is(err, recording.ErrNothing):
		return notFound(err.Error())
	case errors.Is(err, history.ErrClosed):
		return unavailable(err.Error(), true)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return newStatus(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "the request ended before its answer: "+err.Error())
	}
	return newStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the history cannot be read: "+err.Error())
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, r *http.Request, answer any) {
	body, err := json.Marshal(answer)
	if wantsPretty(r) && err == nil {
		body, err = json.MarshalIndent(answer, "", "  ")
	}
	if err != nil {
		writeStatus(w, r, newStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error()))
		return
	}
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	out := newDeadlineWriter(w, WriteTimeout)
	defer out.clear()
	_, _ = out.Write(body) // nobody is left to tell
}

// answer works a request out.
func (a *historyAPI) answer(r *http.Request) (any, error) {
	name, path := cutHistory(r.URL.Path)
	e, ok := historyEndpoints[name]
	switch {
	case !ok, e.object == (path == ""):
		return nil, refuse(http.StatusNotFound, metav1.StatusReasonNotFound,
			"there is nothing at %s: see %sopenapi.json for what there is", r.URL.Path, extensionPrefix)
	case r.Method != http.MethodGet || isUpgrade(r):
		return nil, &refusedCall{methodNotAllowed()}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuseBad("the query cannot be read: %v", err)
	}
	for parameter, values := range query {
		switch {
		case parameter == "pretty", parameter == "resource" && slices.Contains(e.parameters, "resource"):
		case !slices.Contains(e.parameters, parameter):
			return nil, refuseBad("there is no parameter %q: there are %s", parameter, strings.Join(e.parameters, ", "))
		case len(values) > 1:
			return nil, refuseBad("%s is given %d times", parameter, len(values))
		}
	}
	call := &historyCall{historyAPI: a, r: r, query: query, now: time.Now(), path: path, store: a.source.Store()}
	if call.store == nil && name != "" {
		status, ok := a.source.Status()
		if !ok {
			return nil, refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "nothing is recorded: give watchkeeper serve a --data-dir")
		}
		return nil, &refusedCall{unavailable("the history is not open: "+cmp.Or(status.Problem, "it is being opened"), true)}
	}
	return e.serve(call)
}

// cutHistory takes a path apart: what is asked for, and the path of the API
// behind it.
func cutHistory(path string) (name, rest string) {
	path = strings.TrimPrefix(path, historyPath)
	for name, e := range historyEndpoints {
		if e.object {
			if rest, ok := strings.CutPrefix(path, name+"/"); ok {
				return name, "/" + rest
			}
		}
	}
	return strings.TrimSuffix(path, "/"), ""
}

// limit returns how many items a page is to have.
func (c *historyCall) limit(usual, most int) (int, error) {
	text := c.query.Get("limit")
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, refuseBad("limit is %q: it has to be from 1 to %d", text, most)
	}
	return n, nil
}

// noise reports whether noise is to be shown.
func (c *historyCall) noise() (bool, error) {
	switch text := c.query.Get("noise"); text {
	case "", "fold":
		return false, nil
	case "show":
		return true, nil
	default:
		return false, refuseBad("noise is %q: it is fold, unless it is to be show", text)
	}
}

// objects reports whether whole objects are to be in the answer.
func (c *historyCall) objects() (bool, error) {
	switch text := c.query.Get("objects"); text {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, refuseBad("objects is %q: it has to be true or false", text)
	}
}

// when returns the moment that a parameter names, usual if it is not there, and
// a zero one if there is no usual.
func (c *historyCall) when(parameter, usual string) (kube.Moment, error) {
	// The plus of a time zone is a space to who did not escape it.
	text := strings.ReplaceAll(c.query.Get(parameter), " ", "+")
	if text == "" {
		if text = usual; text == "" {
			return kube.Moment{}, nil
		}
	}
	when, err := kube.ParseMoment(text, c.now)
	if err != nil {
		return when, refuseBad("%s: %v", parameter, err)
	}
	return when, nil
}
