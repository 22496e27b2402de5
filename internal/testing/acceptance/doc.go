// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package acceptance holds the end-to-end tests: the real watchkeeper command in
// front of a real control plane, used through the real kubectl and curl, and
// disturbed by kills. It contains only tests.
//
// It needs bin/localcluster (make build).
package acceptance
