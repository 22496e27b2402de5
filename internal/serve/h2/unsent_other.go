// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package h2

import "net"

func limitUnsent(net.Conn) {}
