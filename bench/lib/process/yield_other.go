// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "errors"

// Yield needs Linux.
func Yield() (restore func() error, err error) { return nil, errors.ErrUnsupported }
