// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"errors"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// What the causes of a refusal have as their reason, for programs such as the page, which say
// it in their own words and times. The field of each cause names its message: from and to,
// which are times, resourceVersion, and why.
const (
	NotObserved     = metav1.CauseType("NotObserved")     // between from and to
	BeforeRecord    = metav1.CauseType("BeforeRecord")    // which begins at from, if there is one
	AfterRecord     = metav1.CauseType("AfterRecord")     // which ends at to
	RecordEnded     = metav1.CauseType("RecordEnded")     // at to, and why
	NothingRecorded = metav1.CauseType("NothingRecorded") // of an object between from and to
)

// causes returns the details of a Status for a moment at which the state is not known; nil
// for another error.
func causes(err error) *metav1.StatusDetails {
	e, ok := errors.AsType[*history.RangeError](err)
	if !ok {
		return nil
	}
	from, to := e.From.At, e.To.At
	switch {
	case errors.Is(err, history.ErrGap):
		return Details(NotObserved, e.Resource, from, to)
	case errors.Is(err, history.ErrBefore):
		return Details(BeforeRecord, e.Resource, from, time.Time{})
	case errors.Is(err, history.ErrFuture):
		d := Details(AfterRecord, e.Resource, time.Time{}, to)
		if e.RV != 0 {
			d.Causes = append(d.Causes, metav1.StatusCause{Type: AfterRecord, Field: "resourceVersion", Message: strconv.FormatUint(e.RV, 10)})
		}
		return d
	case e.Why != nil:
		d := Details(RecordEnded, e.Resource, time.Time{}, to)
		d.Causes = append(d.Causes, metav1.StatusCause{Type: RecordEnded, Field: "why", Message: e.Why.Error()})
		return d
	}
	return nil
}

// Details returns the details of a Status about a resource, with a cause for each time that is
// not zero, and one without a field if both are.
func Details(reason metav1.CauseType, id kube.Resource, from, to time.Time) *metav1.StatusDetails {
	d := &metav1.StatusDetails{Group: id.Group, Kind: id.Name}
	if !from.IsZero() {
		d.Causes = append(d.Causes, metav1.StatusCause{Type: reason, Field: "from", Message: Stamp(from)})
	}
	if !to.IsZero() {
		d.Causes = append(d.Causes, metav1.StatusCause{Type: reason, Field: "to", Message: Stamp(to)})
	}
	if len(d.Causes) == 0 {
		d.Causes = []metav1.StatusCause{{Type: reason}}
	}
	return d
}
