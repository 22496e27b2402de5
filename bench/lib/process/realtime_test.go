// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// policies returns the scheduling policies of this process's threads, as in /proc.
func policies(t *testing.T) map[string]int {
	t.Helper()
	all := map[string]int{}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		b, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/stat")
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		all[fields[38]]++ // field 41 of the line
	}
	return all
}

func TestRealtime(t *testing.T) {
	restore, err := Realtime()
	if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if p := policies(t); len(p) != 1 || p["2"] == 0 { // SCHED_RR
		t.Errorf("policies %v", p)
	}
	if err := restore(); err != nil {
		t.Error(err)
	}
	if p := policies(t); len(p) != 1 || p["0"] == 0 { // SCHED_NORMAL
		t.Errorf("policies %v", p)
	}
}
