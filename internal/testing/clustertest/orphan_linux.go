// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os/exec"
	"syscall"
)

// noOrphan makes the kernel kill the child if the test ends without stopping it,
// for example when go test times out. The kernel sends the signal when the thread
// that started the child ends. The runtime ends only threads to which a goroutine
// was locked, and no goroutine is locked here.
func noOrphan(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
