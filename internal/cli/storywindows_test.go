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

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/story/storytest"
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
				for _, e := range storytest.Added(whole, part) {
					t.Errorf("%v: %s: is not in\n%s", window, storytest.Title(e), storytest.Titles(whole))
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
							t.Errorf("%s: %s: is not in\n%s", entry.Name, of.Title, storytest.Titles(whole))
						}
					}
				}
			}
		})
	}
}
