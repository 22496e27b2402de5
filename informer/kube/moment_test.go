// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]kube.Moment{
		"now":                       {At: now},
		"10m":                       {At: now.Add(-10 * time.Minute)},
		"1h30m":                     {At: now.Add(-90 * time.Minute)},
		"0s":                        {At: now},
		"2d":                        {At: now.Add(-48 * time.Hour)},
		"1d12h":                     {At: now.Add(-36 * time.Hour)},
		"2026-02-28T23:00:00Z":      {At: now.Add(-13 * time.Hour)},
		"2026-03-01T13:30:00+02:00": {At: now.Add(-30 * time.Minute)},
		"2027-01-01T00:00:00.5Z":    {At: time.Date(2027, 1, 1, 0, 0, 0, 5e8, time.UTC)},
		"rv:1":                      {RV: 1},
		"rv:18446744073709551615":   {RV: 1<<64 - 1},
	} {
		got, err := kube.ParseMoment(text, now)
		if err != nil || got.RV != want.RV || !got.At.Equal(want.At) {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
			continue
		}
		if again, err := kube.ParseMoment(got.String(), now); err != nil || again.RV != got.RV || !again.At.Equal(got.At) {
			t.Errorf("%q, written as %q, is %v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{
		"", "Now", "yesterday", "-10m", "+10m", "10", "1d-3h", "d", "1.5d", "2d3d", "99999d", "1h2d",
		"rv:", "rv:0", "rv:-1", "rv:+1", "rv:x", "rv:18446744073709551616", "2026-02-28", "2026-02-28T23:00:00", "9999999h",
	} {
		if got, err := kube.ParseMoment(text, now); err == nil {
			t.Errorf("%q is parsed as %v", text, got)
		}
	}
}
