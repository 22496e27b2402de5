// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// Two changes differ in what is to change, and in nothing else; the same change
// is the same in a list and in an event.
func TestChurn(t *testing.T) {
	s, err := New(Options{Pods: 3, Tables: true, Churn: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.encodings {
		if got := len(e.objects[1].churn.times); e.protobuf != (got == 0) {
			t.Errorf("%T has %d times", e.format, got)
		}
	}
	o := s.encodings[0].objects[1]
	pod := func(rv int64) (p corev1.Pod) {
		if err := json.Unmarshal(o.appendTo([]byte("{"), rv), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	restarted := 0
	for rv := int64(firstRV + 10); rv < firstRV+1010; rv++ {
		was, is := pod(rv), pod(rv+perSecond)
		if diff := cmp.Diff(was, pod(rv)); diff != "" {
			t.Fatal(diff)
		}
		if was.ManagedFields[1].Time.Equal(is.ManagedFields[1].Time) {
			t.Fatalf("at %d the kubelet did nothing", rv)
		}
		changed := 0
		for i, c := range is.Status.Conditions {
			if !c.LastTransitionTime.Equal(&was.Status.Conditions[i].LastTransitionTime) {
				changed++
			}
		}
		if changed > 4 {
			t.Errorf("at %d %d conditions changed", rv, changed)
		}
		if is.Status.ContainerStatuses[0].RestartCount > 0 {
			restarted++
		}
		was.Status, is.Status = corev1.PodStatus{}, corev1.PodStatus{}
		was.ManagedFields[1].Time, is.ManagedFields[1].Time = nil, nil
		was.ResourceVersion, is.ResourceVersion = "", ""
		if diff := cmp.Diff(was, is); diff != "" {
			t.Fatal(diff)
		}
	}
	if restarted < 20 || restarted > 200 {
		t.Errorf("%d of 1000 have restarts", restarted)
	}
}
