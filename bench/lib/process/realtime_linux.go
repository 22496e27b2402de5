// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// The policies of sched(7).
const (
	schedNormal = 0
	schedRR     = 2
)

// Realtime makes this process run whenever it has something to do, before all others, until
// restore is called: what it then observes is not late because it had to wait for a
// processor. Processes that it starts meanwhile inherit that. It needs the privilege to
// do so (CAP_SYS_NICE).
func Realtime() (restore func() error, err error) {
	restore = func() error { return schedule(schedNormal, 0) }
	if err := schedule(schedRR, 1); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// schedule changes all threads. A thread that is started meanwhile inherits the policy
// of the one that starts it, so it repeats until none is left.
func schedule(policy uintptr, priority int32) error {
	for done := map[int]bool{}; ; {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		changed := false
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if done[id] {
				continue
			}
			done[id], changed = true, true
			// struct sched_param has the priority only.
			_, _, errno := syscall.Syscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(id), policy, uintptr(unsafe.Pointer(&priority)))
			if errno != 0 && errno != syscall.ESRCH { // ESRCH: the thread has ended
				return os.NewSyscallError("sched_setscheduler", errno)
			}
		}
		if !changed {
			return nil
		}
	}
}
