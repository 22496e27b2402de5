// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package get is the command "watchkeeper get": kubectl's own get command, from
// k8s.io/kubectl, which therefore prints and fails as kubectl does, with three additions.
// The server may be a gateway (package connect). --at reads the past from a gateway.
// And --watch in a terminal shows tables that update in place (package livetable).
package get
