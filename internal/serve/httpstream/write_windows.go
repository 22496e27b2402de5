// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package httpstream

import "errors"

// writesNow is false: a write to a socket waits there. Each watch over HTTP/1.1 has a
// goroutine.
const writesNow = false

func writeNow(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
