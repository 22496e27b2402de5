// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/watchkeeper/watchkeeper/internal/server"
)

// explain returns the text of an error, with a hint if there is a usual remedy.
func explain(err error) string {
	if le, ok := errors.AsType[*server.ListenError](err); ok {
		return le.Error() + ": " + listenHint(le)
	}
	for _, flag := range []string{"--www: ", "--accept-", "--reject-"} {
		if !strings.HasPrefix(err.Error(), flag) {
			continue
		}
		if flag == "--www: " {
			return err.Error() + ": use a readable directory with --www"
		}
		return err.Error() + ": use regular expressions in Go's syntax, separated by commas"
	}
	return err.Error()
}

func listenHint(le *server.ListenError) string {
	switch {
	case le.Flag == "unix-socket" && errors.Is(le.Err, syscall.EADDRINUSE):
		return "another process uses this socket; stop it, or choose another path with --unix-socket"
	case le.Flag == "unix-socket":
		return "choose another path with --unix-socket"
	case errors.Is(le.Err, syscall.EADDRINUSE) && le.Flag == "port":
		return "choose another port with --port (0 uses a free one)"
	case errors.Is(le.Err, syscall.EADDRINUSE):
		return "choose another address with --admin-listen (127.0.0.1:0 uses a free port, an empty value disables the listener)"
	case errors.Is(le.Err, fs.ErrPermission) && le.Flag == "port":
		return "ports below 1024 need privileges; choose another port with --port"
	case le.Flag == "port":
		return "check --address and --port"
	}
	return "check --" + le.Flag
}

// unknownContext lists the contexts that exist.
func unknownContext(name string, known []string) error {
	if len(known) == 0 {
		return fmt.Errorf("context %q does not exist, and the kubeconfig has no contexts: check --kubeconfig", name)
	}
	return fmt.Errorf("context %q does not exist: choose one of %s with --context", name, strings.Join(known, ", "))
}
