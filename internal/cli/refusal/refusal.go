// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package refusal says, in the words of the commands and the reader's zone, what a gateway refuses:
// above all that the state at a moment is not known. Nothing else says that.
package refusal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchkeeper/watchkeeper/internal/record/past"
)

// An Error is a Status that the gateway returned as an error.
type Error struct{ metav1.Status }

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Cause returns what is the matter with the moment of a request; "" if the error is another.
func (e *Error) Cause() metav1.CauseType {
	if e.Details == nil || len(e.Details.Causes) == 0 {
		return ""
	}
	return e.Details.Causes[0].Type
}

// BeforeRecord says that a moment is before the record.
func BeforeRecord(begin string) string {
	return "before the recorded history, which begins at " + begin + ": use a later moment"
}

// InGap says that a moment is in a gap.
func InGap(from, to time.Time, stamp func(time.Time) string) string {
	return NotObserved(from, to, stamp) + ": these two are the nearest moments that are known"
}

// NotObserved names a time in which nothing was observed, in whole seconds around it.
func NotObserved(from, to time.Time, stamp func(time.Time) string) string {
	return fmt.Sprintf("not observed between %s and %s", stamp(from.Truncate(time.Second)), stamp(WholeSecond(to)))
}

// WholeSecond returns the first whole second, as times are printed, that is not before a time.
func WholeSecond(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

// apiTime matches the times in messages of the gateway.
var apiTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// InZone gives a text of the gateway the reader's times.
func InZone(text string, stamp func(time.Time) string) string {
	return apiTime.ReplaceAllStringFunc(text, func(text string) string {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return text
		}
		return stamp(t)
	})
}

// InWords gives a refusal of the gateway the words of the commands, and the reader's times: by
// its causes if it is about a moment at which the state is not known.
func (e *Error) InWords(stamp func(time.Time) string) {
	e.Message = InZone(e.Message, stamp)
	cause := e.Cause()
	if cause == "" {
		return
	}
	at, field := map[string]time.Time{}, map[string]string{}
	for _, c := range e.Details.Causes {
		field[c.Field] = c.Message
		if t, err := time.Parse(time.RFC3339, c.Message); err == nil {
			at[c.Field] = t
		}
	}
	from, to := at["from"], at["to"]
	text := ""
	switch {
	case cause == past.NotObserved:
		text = InGap(from, to, stamp)
	case cause == past.BeforeRecord && !from.IsZero():
		text = BeforeRecord(stamp(WholeSecond(from)))
	case cause == past.AfterRecord && field["resourceVersion"] != "":
		text = "resourceVersion " + field["resourceVersion"] + " is after the recorded history, which ends at " + stamp(to)
	case cause == past.AfterRecord:
		text = "after the end of the recording, " + stamp(to)
	case cause == past.RecordEnded:
		text = "recorded until " + stamp(to) + ": " + InZone(field["why"], stamp)
	default:
		return
	}
	if e.Details.Kind != "" {
		text = schema.GroupResource{Group: e.Details.Group, Resource: e.Details.Kind}.String() + ": " + text
	}
	e.Message = text
}

// A Transport is a transport whose refusals have the words of the commands: for kubectl's own code.
type Transport struct {
	Base  http.RoundTripper
	Stamp func(time.Time) string
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Base.RoundTrip(r)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	e := &Error{}
	if json.Unmarshal(body, &e.Status) == nil && e.Cause() != "" {
		e.InWords(t.Stamp)
		if body, err = json.Marshal(e.Status); err != nil {
			return nil, err
		}
		resp.Header.Del("Content-Length")
		resp.ContentLength = int64(len(body))
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
