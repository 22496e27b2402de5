// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"
)

// An arrival is a connection that knows when the kernel received the bytes of the last
// Read. That does not depend on when this process had the processor to read them.
type arrival struct {
	*net.TCPConn
	raw syscall.RawConn
	at  time.Time
	oob [64]byte // more than a header and a timespec
}

// stamp makes the kernel say when bytes arrive. at may be called between two Reads.
func stamp(c *net.TCPConn) (stamped net.Conn, at func() time.Time, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
	})
	if err == nil {
		err = failed
	}
	a := &arrival{TCPConn: c, raw: raw}
	return a, func() time.Time { return a.at }, err
}

func (a *arrival) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	var oob int
	var failed error
	err = a.raw.Read(func(fd uintptr) bool {
		for {
			n, oob, _, _, failed = syscall.Recvmsg(int(fd), p, a.oob[:], 0)
			if failed != syscall.EINTR {
				return failed != syscall.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Addr: a.RemoteAddr(), Err: failed}
	case n == 0:
		return 0, io.EOF
	}
	a.at = received(a.oob[:oob])
	return n, nil
}

// received returns the time of a timestamp's message, or now if there is none: the kernel
// begins a moment after it was asked.
func received(oob []byte) time.Time {
	all, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return time.Now()
	}
	for _, m := range all {
		if m.Header.Level == syscall.SOL_SOCKET && m.Header.Type == syscall.SCM_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(syscall.Timespec{})) {
			return time.Unix((*syscall.Timespec)(unsafe.Pointer(&m.Data[0])).Unix())
		}
	}
	return time.Now()
}
