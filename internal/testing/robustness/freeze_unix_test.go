// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package robustness

import "syscall"

// freeze stops a process until thaw.
func freeze(pid int) (thaw func(), err error) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }, nil // the process may have ended
}
