// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Event has what an Event says, in either of its API groups.
type Event struct {
	InvolvedObject corev1.ObjectReference `json:"involvedObject"`
	Regarding      corev1.ObjectReference `json:"regarding"`
	Type           string                 `json:"type"`
	Reason         string                 `json:"reason"`
	Message        string                 `json:"message"`
	Note           string                 `json:"note"`

	Count           int `json:"count"`
	DeprecatedCount int `json:"deprecatedCount"`
	Series          *struct {
		Count            int              `json:"count"`
		LastObservedTime metav1.MicroTime `json:"lastObservedTime"`
	} `json:"series"`

	Source              corev1.EventSource `json:"source"`
	DeprecatedSource    corev1.EventSource `json:"deprecatedSource"`
	ReportingComponent  string             `json:"reportingComponent"`
	ReportingController string             `json:"reportingController"`
}

// About returns the object that the Event is about; without a kind if it names none.
func (e *Event) About() corev1.ObjectReference {
	if e.InvolvedObject.Kind == "" {
		return e.Regarding
	}
	return e.InvolvedObject
}

// Times returns how often it has occurred.
func (e *Event) Times() int {
	n := max(e.Count, e.DeprecatedCount, 1)
	if e.Series != nil {
		n = max(n, e.Series.Count)
	}
	return n
}

// Text returns the message on one line.
func (e *Event) Text() string {
	return Because(strings.TrimPrefix(cmp.Or(e.Message, e.Note), "(combined from similar events): "))
}

// Reporter returns what has written the Event.
func (e *Event) Reporter() string {
	return cmp.Or(e.ReportingComponent, e.ReportingController, e.Source.Component, e.DeprecatedSource.Component)
}
