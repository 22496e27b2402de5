// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// Yield makes this process take only the processor time that others leave, until restore
// is called: as if it ran on another machine, as long as they leave some. Processes that it
// starts meanwhile inherit that. It fails without the privilege to restore (CAP_SYS_NICE).
func Yield() (restore func() error, err error) {
	if err := mayRaise(); err != nil {
		return nil, err
	}
	const lowest = 19
	restore = func() error { return reniceAll(0) }
	if err := reniceAll(lowest); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// mayRaise tries to raise the priority of a thread. Lowering it again is always allowed.
func mayRaise() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := renice(syscall.Gettid(), -1); err != nil {
		return err
	}
	return renice(syscall.Gettid(), 0)
}

// reniceAll changes all threads, which Linux has priorities of. A thread that is started
// meanwhile inherits that of the one that starts it, so it repeats until none is left.
func reniceAll(nice int) error {
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
			if err := renice(id, nice); err != nil && !errors.Is(err, syscall.ESRCH) { // it has ended
				return err
			}
		}
		if !changed {
			return nil
		}
	}
}

func renice(thread, nice int) error {
	return os.NewSyscallError("setpriority", syscall.Setpriority(syscall.PRIO_PROCESS, thread, nice))
}
