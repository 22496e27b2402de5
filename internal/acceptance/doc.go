// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package acceptance holds the tests of the whole: the real watchkeeper
// command in front of a real control plane, used through the real kubectl and
// curl, and disturbed by kills. There is nothing in it but tests.
//
// It needs bin/localcluster (make build).
package acceptance
