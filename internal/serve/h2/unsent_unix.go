// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package h2

import (
	"net"
	"runtime"
	"syscall"
)

// maxUnsent is how many bytes of a connection may wait in the kernel to be sent. More
// would only delay the events behind them.
const maxUnsent = 256 << 10

// limitUnsent sets maxUnsent for a TCP connection (TCP_NOTSENT_LOWAT).
func limitUnsent(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	option := 25
	if runtime.GOOS == "darwin" {
		option = 0x201
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, option, maxUnsent) // a hint
	})
}
