// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os/exec"
	"syscall"
)

// noOrphan has the kernel end the child when the test ends without doing so,
// as it does when go test runs out of time.
func noOrphan(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
