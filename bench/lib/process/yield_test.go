// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// niceness counts this process's threads by their niceness.
func niceness(t *testing.T) map[string]int {
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
		all[fields[16]]++ // field 19 of the line
	}
	return all
}

func TestYield(t *testing.T) {
	before := niceness(t)
	if before["0"] == 0 || len(before) != 1 {
		t.Skipf("the test's own niceness is not 0: %v", before)
	}
	restore, err := Yield()
	if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		if now := niceness(t); now["0"] == 0 || len(now) != 1 {
			t.Errorf("without the privilege, it leaves %v", now)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if now := niceness(t); now["19"] == 0 || len(now) != 1 {
		t.Errorf("niceness %v", now)
	}
	if err := restore(); err != nil {
		t.Error(err)
	}
	if now := niceness(t); now["0"] == 0 || len(now) != 1 {
		t.Errorf("niceness %v after it", now)
	}
}
