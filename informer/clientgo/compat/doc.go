// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package compat tests the adapters with a manager of controller-runtime. It is a
// module of its own, so that scripts/compat can build it with each supported version
// of client-go and controller-runtime. It contains only tests.
package compat
