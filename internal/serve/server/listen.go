// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A ListenError is returned if a listener cannot be opened. It names the flag of
// its address.
type ListenError struct {
	Flag    string // without dashes
	Address string
	Err     error
}

func (e *ListenError) Error() string { return fmt.Sprintf("listen on %s: %v", e.Address, e.Err) }

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Err }

func listen(ctx context.Context, opts Options) (net.Listener, error) {
	if opts.UnixSocket != "" {
		return listenUnix(ctx, opts.UnixSocket)
	}
	return listenTCP(ctx, "port", net.JoinHostPort(strings.Trim(opts.Address, "[]"), strconv.Itoa(opts.Port)))
}

func listenTCP(ctx context.Context, flag, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, listenError(flag, address, err)
	}
	return l, nil
}

// listenUnix opens a socket that only its owner may use; the owner may change its
// mode. It replaces the socket of a process that was killed.
//
// The socket is created in a private directory and linked to its path with its
// final mode. If the mode were changed afterwards, others could connect before,
// and the umask belongs to the whole process.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := clearSocket(ctx, path); err != nil {
		return nil, listenError("unix-socket", path, err)
	}
	l, err := makeSocket(ctx, path)
	if err != nil {
		return nil, listenError("unix-socket", path, err)
	}
	return l, nil
}

// clearSocket removes a socket that has no server.
func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("a file exists that is not a socket")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var d net.Dialer
	if conn, err := d.DialContext(ctx, "unix", path); err == nil {
		conn.Close()
		return syscall.EADDRINUSE
	}
	return os.Remove(path)
}

func makeSocket(ctx context.Context, path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".wk-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	private := filepath.Join(dir, "s")
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", private)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	info, err := os.Lstat(private)
	if err == nil {
		err = os.Chmod(private, 0o600)
	}
	if err == nil {
		err = os.Link(private, path) // unlike Rename, it replaces nothing
		if errors.Is(err, fs.ErrExist) {
			err = syscall.EADDRINUSE // another process was faster
		}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return &socket{Listener: l, path: path, info: info}, nil
}

// socket is a listener on a Unix socket that was linked to path.
type socket struct {
	net.Listener
	path string
	info fs.FileInfo
}

func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close also removes the socket, unless it was replaced.
func (s *socket) Close() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.info) {
		os.Remove(s.path) //nolint:errcheck // the next start replaces an unused socket
	}
	return s.Listener.Close()
}

// listenError removes the operation and address that net and os repeat.
func listenError(flag, address string, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		err = sys.Err
	}
	return &ListenError{Flag: flag, Address: address, Err: err}
}

// isLoopback reports whether only this machine can reach addr.
func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}
