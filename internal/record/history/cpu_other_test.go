// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package history

import "time"

// cpuTime is not known.
func cpuTime() time.Duration { return 0 }
