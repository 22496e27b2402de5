// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/record/past/pasttest"
)

// TestDetails: the Status for a moment at which the state is not known has what its message
// says as causes.
func TestDetails(t *testing.T) {
	c := pasttest.NewCluster(t)
	c.Fill()
	record := &pasttest.Record{History: c.Store}
	stopped := &pasttest.Record{History: c.Store, OnSync: func() error { return errors.New("the disk is full") }}
	stamp := func(seconds float64) string { return Stamp(c.At(seconds)) }
	gap := fmt.Sprintf("NotObserved from %s, NotObserved to %s", stamp(50), stamp(80))
	for name, test := range map[string]struct {
		record Record
		when   kube.Moment
		want   string
	}{
		"an RV in a gap":          {record, kube.Moment{RV: 160}, gap},
		"a time in a gap":         {record, kube.Moment{At: c.At(60)}, gap},
		"an RV before the record": {record, kube.Moment{RV: 50}, "BeforeRecord from " + stamp(0)},
		"before the record":       {record, kube.Moment{At: c.At(-60)}, "BeforeRecord from " + stamp(0)},
		"an RV after the record":  {record, kube.Moment{RV: 999}, fmt.Sprintf("AfterRecord to %s, AfterRecord resourceVersion 999", stamp(100))},
		"after a recording":       {Recording{History: c.Store}, kube.Moment{At: time.Now()}, "AfterRecord to " + stamp(100)},
		"after recording stopped": {stopped, kube.Moment{At: c.At(200)}, fmt.Sprintf("RecordEnded to %s, RecordEnded why the disk is full", stamp(100))},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPast(t, test.record)
			_, err := p.Locate(t.Context(), pasttest.Deployments, test.when)
			if err == nil {
				t.Fatal("no error")
			}
			s := p.Refusal(err)
			if s.Details == nil {
				t.Fatalf("no details: %s", s.Message)
			}
			var got []string
			for _, cause := range s.Details.Causes {
				got = append(got, fmt.Sprintf("%s %s %s", cause.Type, cause.Field, cause.Message))
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("%s\nhas %s\nnot %s", s.Message, got, test.want)
			}
			if d := s.Details; name != "after a recording" && (d.Group != "apps" || d.Kind != "deployments") {
				t.Errorf("it is about %s.%s", d.Kind, d.Group)
			}
		})
	}
}
