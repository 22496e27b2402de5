// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestChurn: two changes differ only in fields that a kubelet changes; a change is the
// same in a list and in an event.
func TestChurn(t *testing.T) {
	body, err := json.Marshal(Pod(1))
	if err != nil {
		t.Fatal(err)
	}
	churn := FindChurn(body, false)
	if len(churn.times) == 0 {
		t.Error("nothing changes")
	}
	old := strconv.Itoa(FirstRV + 1)
	pod := func(rv uint64) (p corev1.Pod) {
		text := bytes.Replace(body, []byte(old), []byte(strconv.FormatUint(rv, 10)), 1)
		churn.Write(text, rv)
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	restarted := 0
	for rv := uint64(FirstRV + 10); rv < FirstRV+1010; rv++ {
		was, is := pod(rv), pod(rv+ChangesPerSecond)
		if again := pod(rv); !reflect.DeepEqual(was, again) { // cmp.Diff takes ten times as long
			t.Fatal(cmp.Diff(was, again))
		}
		if was.ManagedFields[1].Time.Equal(is.ManagedFields[1].Time) {
			t.Fatalf("at %d nothing changed", rv)
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
		if !reflect.DeepEqual(was, is) {
			t.Fatal(cmp.Diff(was, is))
		}
	}
	if restarted < 20 || restarted > 200 {
		t.Errorf("%d of 1000 have restarts", restarted)
	}
}
