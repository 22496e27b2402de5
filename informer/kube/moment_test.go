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
		"2026-02-28 23:00:00Z":      {At: now.Add(-13 * time.Hour)},
		"2026-02-28T23:00:00":       {At: now.Add(-13 * time.Hour)},
		"2026-02-28 23:00:00":       {At: now.Add(-13 * time.Hour)},
		"2026-02-28 23:00":          {At: now.Add(-13 * time.Hour)},
		"2026-03-01T00:00:00.000Z":  {At: now.Add(-12 * time.Hour)},
		"2026-03-01 13:30:00+02:00": {At: now.Add(-30 * time.Minute)},
		"2026-03-01 13:30 +0200":    {At: now.Add(-30 * time.Minute)},
		"2026-03-01":                {At: now.Add(-12 * time.Hour)},
		"11:30:00":                  {At: now.Add(-30 * time.Minute)},
		"11:30":                     {At: now.Add(-30 * time.Minute)},
		"11:30:00.250":              {At: now.Add(-30*time.Minute + 250*time.Millisecond)},
		"12:00":                     {At: now},
		"12:01":                     {At: now.Add(time.Minute - 24*time.Hour)},
		"13:30:00+02:00":            {At: now.Add(-30 * time.Minute)},
		"23:58:52Z":                 {At: now.Add(-12*time.Hour - 68*time.Second)},
		"2026-02-28 23:00:00 UTC":   {At: now.Add(-13 * time.Hour)},
		"11:30 UTC":                 {At: now.Add(-30 * time.Minute)},
		"13:30:00 UTC+2":            {At: now.Add(-30 * time.Minute)},
		"08:00 UTC-3:30":            {At: now.Add(-30 * time.Minute)},
		"2026-03-01 17:15 UTC+5:45": {At: now.Add(-30 * time.Minute)},
		"10m ago":                   {At: now.Add(-10 * time.Minute), Ago: true},
		"2y5d":                      {At: now.Add(-735 * 24 * time.Hour), Ago: true},
		"1y ago":                    {At: now.Add(-365 * 24 * time.Hour), Ago: true},
		"rv:1":                      {RV: 1},
		"12031":                     {RV: 12031},
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
		"", "0", "0 ago", "Now", "yesterday", "-10m", "+10m", "01", "1d-3h", "d", "1.5d", "2d3d", "99999d", "1h2d", "1d2y", "180y", "179y1d", "y", "ago", " ago", "now ago", "11:30 ago", "rv:1 ago",
		"UTC", "10m UTC", "now UTC", "11:30 UTC+", "11:30 UTC+99", "11:30Z UTC", "11:30 CET",
		"rv:", "rv:0", "rv:-1", "rv:+1", "rv:x", "rv:18446744073709551616", "18446744073709551616", "9999999h",
		"2026-02-30", "2026-2-28", "24:00", "12:60", "11:30 PM", "2026-02-28_23:00", "2026-02-28T23", "28.02.2026", "11:30 UTC1", "11:30 UTC+", "11:30Z UTC", " UTC", " 11:30", "T11:30",
	} {
		if got, err := kube.ParseMoment(text, now); err == nil {
			t.Errorf("%q is parsed as %v", text, got)
		}
	}
}

// TestParseMomentInZone: a time without a zone is one of the zone of now, also on the
// days on which its offset changes.
func TestParseMomentInZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 29, 4, 30, 0, 0, berlin) // 02:30 UTC; 02:00 to 03:00 did not exist
	for text, want := range map[string]string{
		"04:00":               "2026-03-29T02:00:00Z",
		"01:30":               "2026-03-29T00:30:00Z",
		"23:00":               "2026-03-28T22:00:00Z",
		"05:00":               "2026-03-28T04:00:00Z",
		"02:00Z":              "2026-03-29T02:00:00Z",
		"03:00Z":              "2026-03-28T03:00:00Z",
		"2026-03-28":          "2026-03-27T23:00:00Z",
		"2026-03-28 12:00:00": "2026-03-28T11:00:00Z",
		"2026-03-29T12:00:00": "2026-03-29T10:00:00Z",
		"2026-03-29T12:00Z":   "2026-03-29T12:00:00Z",
	} {
		if got, err := kube.ParseMoment(text, now); err != nil || got.String() != want {
			t.Errorf("%q is %v, %v; want %s", text, got, err, want)
		}
	}
}

// FuzzParseMoment: what is parsed, is written so that it is parsed to the same, in any
// zone; and a time that is written as the command line does is parsed to the same.
func FuzzParseMoment(f *testing.F) {
	for _, text := range []string{
		"now", "10m", "1d12h", "rv:7", "7", "2026-02-28T23:00:00.5Z", "2026-02-28 23:00+01:00", "2026-02-28", "23:00:00", "9:30 -0700", "0001-01-01 00:00:00Z",
	} {
		f.Add(text, int64(1_700_000_000), int16(0))
		f.Add(text, int64(1_774_747_800), int16(-330))
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64, minutes int16) {
		seconds %= 1 << 34 // up to the year 2514
		now := time.Unix(seconds, 0).In(time.FixedZone("", int(minutes)%(14*60)*60))
		got, err := kube.ParseMoment(text, now)
		if err != nil {
			return
		}
		if got.RV == 0 && got.At.UTC().Year() > 9999 || got.At.UTC().Year() < 0 {
			return // RFC 3339 cannot write it
		}
		for _, written := range []string{got.String(), got.At.Format("2006-01-02 15:04:05.999999999Z07:00"), got.At.Format("2006-01-02 15:04:05.999999999")} {
			if got.RV != 0 && written != got.String() || got.At.Year() < 0 || got.At.Year() > 9999 {
				continue
			}
			if written == got.At.Format("2006-01-02 15:04:05.999999999") {
				_, offset := got.At.Zone()
				if _, here := now.Zone(); offset != here {
					continue // it has another zone, which this form leaves out
				}
			}
			again, err := kube.ParseMoment(written, now)
			if err != nil || again.RV != got.RV || !again.At.Equal(got.At) {
				t.Errorf("%q is %v; written as %q, it is %v, %v", text, got, written, again, err)
			}
		}
	})
}
