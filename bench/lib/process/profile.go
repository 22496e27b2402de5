// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Profile starts to profile a process, whose profiles are below /debug/pprof at a URL, for
// about a duration. wait returns when the profile is saved as name.pprof in a directory.
func Profile(client *http.Client, url, dir, name string, d time.Duration) (wait func() error) {
	done := make(chan error, 1)
	go func() {
		f, err := os.Create(filepath.Join(dir, name+".pprof"))
		if err != nil {
			done <- err
			return
		}
		defer f.Close()
		done <- Fetch(client, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", url, max(1, int(d.Seconds()))), f)
	}()
	return func() error { return <-done }
}
