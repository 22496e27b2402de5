// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/api"
)

// TestStoryWindows: a story of a part of a time has no episode that the story of all of it does
// not have, and the stories of a Deployment and of its Pods tell the same rollouts. The histories
// are those of real controllers.
func TestStoryWindows(t *testing.T) {
	files, err := filepath.Glob("../../demo/scenarios/*.wkr")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	const seed = 7
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".wkr"), func(t *testing.T) {
			asks, err := os.ReadFile(strings.TrimSuffix(file, ".wkr") + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(asks), "\n")
			ask := strings.Fields(first)
			server := openRecording(t, file)
			tell := func(args ...string) (s api.Story, ok bool) {
				out, errs, code := run(append(append([]string{"story", "--server", server, "-o", "json"}, args...), ask[1:]...)...)
				if strings.Contains(errs, "nothing is") {
					return s, false // of it, in that time
				}
				if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
					t.Fatalf("%v: %d %s %v", args, code, errs, err)
				}
				return s, true
			}
			whole, _ := tell(ask[0])
			random := rand.New(rand.NewPCG(seed, 2))
			var read strings.Builder // by people, once
			for i := range 12 {
				begin := whole.Episodes[0].From.Add(-5 * time.Second)
				span := whole.To.Sub(begin)
				from := begin.Add(time.Duration(random.Int64N(int64(span))))
				to := from.Add(time.Duration(random.Int64N(int64(whole.To.Sub(from)) + 1)))
				window := []string{"--since", from.Format(time.RFC3339Nano), "--until", to.Format(time.RFC3339Nano)}
				part, ok := tell(append(window, ask[0])...)
				if !ok {
					continue
				}
				if i < 2 {
					out, _, _ := run(append(append([]string{"story", "--utc", "--server", server}, append(window, ask[0])...), ask[1:]...)...)
					fmt.Fprintf(&read, "$ watchkeeper story %s %s\n%s\n", first, strings.Join(window, " "), out)
				}
				for _, e := range part.Episodes {
					if !slices.ContainsFunc(whole.Episodes, func(w api.Episode) bool { return isPart(whole, e, w) }) {
						t.Errorf("%v: %s %v to %v, begun before %q: %s: is not in\n%s", window, e.Kind, e.From, e.To, e.BegunBefore, e.Title, titles(whole))
					}
				}
			}
			golden(t, "story/windows/"+whole.Name+".txt", read.String())
			if whole.Kind != "Deployment" {
				return
			}
			told := map[string]bool{}
			for _, e := range whole.Episodes {
				for _, entry := range e.Entries {
					if entry.Kind != "Pod" || told[entry.Name] || len(told) == 4 {
						continue
					}
					told[entry.Name] = true
					s, _ := tell("pod/" + entry.Name)
					for _, of := range s.Episodes {
						if of.Kind == api.EpisodeRollout && !slices.ContainsFunc(whole.Episodes, func(w api.Episode) bool { return w.Title == of.Title && w.From.Equal(of.From) && w.To.Equal(of.To) }) {
							t.Errorf("%s: %s: is not in\n%s", entry.Name, of.Title, titles(whole))
						}
					}
				}
			}
		})
	}
}

// isPart reports whether an episode of a part of a time may be one of the whole story. Pods that
// fail during a rollout may be seen without it, and that too few are ready without what led to it.
func isPart(s api.Story, e, whole api.Episode) bool {
	short := e.Kind == api.EpisodeFailure && len(e.Causes) > 0 && e.Causes[0].Name == s.Name && whole.Severity != api.EpisodeInfo
	trail := time.Duration(0)
	if e.Kind == api.EpisodeOther || short { // what follows an episode belongs to it
		trail = 30 * time.Second
	}
	if e.From.After(whole.To.Add(trail)) || whole.From.After(e.To) {
		return false
	}
	if e.Kind != whole.Kind && (e.Kind == api.EpisodeRollout || e.Kind == api.EpisodeOther && e.Severity == api.EpisodeFailed) {
		return false
	}
	if short {
		return true
	}
	key := func(entry api.StoryEntry) string { return fmt.Sprint(entry.Path, entry.Kind, entry.Name) }
	var about []string
	for _, entry := range whole.Entries {
		about = append(about, key(entry), entry.Kind+entry.Name)
	}
	for _, c := range whole.Causes {
		about = append(about, c.Kind+c.Name)
	}
	return slices.ContainsFunc(e.Entries, func(entry api.StoryEntry) bool { return slices.Contains(about, key(entry)) }) ||
		slices.ContainsFunc(e.Causes, func(c api.Cause) bool { return slices.Contains(about, c.Kind+c.Name) })
}

func titles(s api.Story) string {
	var b strings.Builder
	for _, e := range s.Episodes {
		fmt.Fprintf(&b, "\t%s %s %v to %v: %s\n", e.Kind, e.Severity, e.From, e.To, e.Title)
	}
	return b.String()
}
