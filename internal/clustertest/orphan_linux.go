// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os/exec"
	"syscall"
)

// noOrphan has the kernel end the child when the test ends without doing so,
// as it does when go test runs out of time. The signal comes when the thread
// that started the child ends; the runtime ends threads only that a goroutine
// was locked to, and none is here.
func noOrphan(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
