// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package clustertest

import "os/exec"

func noOrphan(*exec.Cmd) {}
