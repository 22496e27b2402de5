// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package robustness

import "errors"

// freeze needs signals.
func freeze(int) (thaw func(), err error) { return nil, errors.ErrUnsupported }
