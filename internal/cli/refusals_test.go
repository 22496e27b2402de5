// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package cli_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchkeeper/watchkeeper/internal/cli"
)

// takeMoments are the commands that have a flag with a moment.
func takeMoments(cmd *cobra.Command) (names []string) {
	for _, flag := range []string{"at", "since", "from"} {
		if cmd.Flags().Lookup(flag) != nil {
			names = append(names, cmd.Name())
		}
	}
	for _, sub := range cmd.Commands() {
		names = append(names, takeMoments(sub)...)
	}
	return names
}

// TestRefusedMoments: every command that takes a moment refuses one in a gap, and one before the
// record, in the same words and in the reader's zone.
func TestRefusedMoments(t *testing.T) {
	const end = `{"rv":9000,"at":"2026-11-21T23:55:00.5Z"}`
	var all []string
	for _, line := range recordingLines(t, "../../demo/incident.wkr") {
		if head, ok := strings.CutPrefix(line, `{"head":`); ok {
			all = append(all, `{"gap":{"from":`+strings.TrimSuffix(head, "}")+`,"to":`+end+`}}`)
			line = `{"head":` + end + `}`
		}
		all = append(all, line)
	}
	file := filepath.Join(t.TempDir(), "gap.wkr")
	record(t, file, slices.Values(all))
	server := openRecording(t, file)
	local := time.Local
	time.Local = time.FixedZone("", -5*3600)
	t.Cleanup(func() { time.Local = local })

	foreign := regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z`)
	words := map[string]string{
		"2026-11-21T23:54:30Z": `(not observed between|nearest moments at which all is known are) 2026-11-21 18:5\d:\d\d-05:00 and 2026-11-21 18:55:01-05:00`,
		"2026-11-21T23:40:00Z": `before the recorded history, which begins at 2026-11-21 18:49:1\d-05:00: use a later moment`,
	}
	var tried []string
	for _, line := range []string{
		"get pods -n shop --at AT", "diagnose -n shop --at AT", "diagnose -A --at AT",
		"diff pods -n shop --from AT", "diff -n shop --from AT",
		"story deployment/checkout -n shop --since 2026-11-21T23:39:00Z --until AT", "history deployment/checkout -n shop --until AT",
		"changes -n shop --since 2026-11-21T23:39:00Z --until AT", "record export -n shop -o " + file + "2 --since 2026-11-21T23:39:00Z --until AT",
	} {
		command := strings.Fields(strings.TrimPrefix(line, "record "))[0]
		tried = append(tried, command)
		for moment, want := range words {
			out, errs, _ := run(append(strings.Fields(strings.ReplaceAll(line, "AT", moment)), "--server", server)...)
			text := out + errs
			if found := foreign.FindString(text); found != "" {
				t.Errorf("%s: %s is not in the reader's zone: %s", line, found, text)
			}
			ends := strings.Contains(line, "--until") // a range that ends in a gap has a part that is known
			if !regexp.MustCompile(want).MatchString(text) && !(ends && moment > "2026-11-21T23:50") {
				t.Errorf("%s with %s: %s, want %s", line, moment, text, want)
			}
		}
	}
	for _, name := range takeMoments(cli.Command()) {
		if !slices.Contains(tried, name) {
			t.Errorf("%s is not tried", name)
		}
	}
}
