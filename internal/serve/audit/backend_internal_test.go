// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A disk has room for some bytes.
type disk struct {
	bytes.Buffer
	free int
}

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), d.free)
	d.free -= n
	d.Buffer.Write(p[:n]) //nolint:errcheck // it never fails
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// TestTornLine: a line that was cut off by a full disk stays the only one.
func TestTornLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := &disk{free: 12}
		l := &losses{path: "p", log: slog.New(slog.NewTextHandler(&log, nil))}
		w := &logWriter{out: d, losses: l}
		write := func(line string) {
			if n, err := io.WriteString(w, line+"\n"); n != len(line)+1 || err != nil {
				t.Errorf("%d %v", n, err)
			}
		}
		write("first")
		write("second-one")
		write("third")
		d.free = 100
		write("fourth")
		write("fifth")
		d.free = 0
		write("sixth")
		d.free = 100
		write("seventh")
		if got, want := d.String(), "first\nsecond\nfourth\nfifth\nseventh\n"; got != want {
			t.Errorf("written %q, want %q", got, want)
		}
		if l.count.Load() != 3 || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%d lost, log %s", l.count.Load(), &log)
		}
		time.Sleep(lossInterval)
		d.free = 0
		write("eighth")
		if strings.Count(log.String(), "\n") != 2 || !strings.Contains(log.String(), "lost=4") {
			t.Errorf("log %s", &log)
		}
	})
}

func TestRedact(t *testing.T) {
	for query, want := range map[string]string{
		"":                         "",
		"watch=1":                  "watch=1",
		"token":                    "token",
		"token=":                   "token=REDACTED",
		"token=&":                  "token=REDACTED&",
		"a=%zz&token=x&b=+%20":     "a=%zz&token=REDACTED&b=+%20",
		"%zz=x;token=y":            "%zz=x;token=REDACTED",
		"continue=x&tokens=y":      "continue=x&tokens=y",
		"&&=&token=a=b&&":          "&&=&token=REDACTED&&",
		"fieldSelector=token%3Dx":  "fieldSelector=token%3Dx",
		"access%5Ftoken=x":         "access%5Ftoken=REDACTED",
		"Authorization=Bearer%20x": "Authorization=REDACTED",
		"watch=/a%3Fb%26token%3Dx": "watch=%2Fa%3Fb%26token%3DREDACTED",
		"watch=/a?token=x&b":       "watch=%2Fa%3Ftoken%3DREDACTED&b",
		"watch=/a?b=%zz;c=/a?b=c":  "watch=/a?b=%zz;c=/a?b=c",
	} {
		if got := redact(query); got != want {
			t.Errorf("%q becomes %q, want %q", query, got, want)
		}
	}
}
