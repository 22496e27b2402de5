// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import "syscall"

// resumed is never sent: Windows does not stop programs.
const resumed = syscall.Signal(0)
