// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/story"
)

// verify checks what holds for all stories: every entry is in one episode, a cause has the version
// that says it, and bad news have an entry or a cause, entries and episodes are in order, one episode is the main one, and the order of the objects does not
// matter.
func verify(t testing.TB, in story.Input, s api.Story) {
	t.Helper()
	if err := story.CheckAssigned(in); err != nil {
		t.Error(err)
	}
	mains := 0
	var last time.Time
	for _, e := range s.Episodes {
		if e.Main {
			mains++
		}
		if e.From.Before(last) || e.To.Before(e.From) || e.Title == "" || strings.ContainsAny(e.Title, "\n\r") || len(e.Entries) == 0 && (!e.Ongoing || len(e.Causes) == 0) {
			t.Errorf("episode %v to %v %q with %d entries, after %v", e.From, e.To, e.Title, len(e.Entries), last)
		}
		last = e.From
		if e.Severity != api.EpisodeInfo && len(e.Entries)+len(e.Causes) == 0 {
			t.Errorf("nothing says that %q", e.Title)
		}
		if !slices.IsSortedFunc(e.Entries, func(a, b api.StoryEntry) int { return a.Time.Compare(b.Time) }) {
			t.Errorf("the entries of %q are not in order", e.Title)
		}
		for _, entry := range e.Entries {
			if entry.Time.Location() != time.UTC || entry.NotBefore.Location() != time.UTC {
				t.Errorf("%v, not before %v: not in UTC", entry.Time, entry.NotBefore)
			}
		}
		for _, c := range e.Causes {
			if c.Kind == "" || c.Text == "" || c.Field == "" || c.Path == "" || c.ResourceVersion == "" {
				t.Errorf("%q has the cause %+v", e.Title, c)
			}
		}
	}
	if mains != min(len(s.Episodes), 1) {
		t.Errorf("%d of %d episodes are the main one", mains, len(s.Episodes))
	}
	first, err := json.Marshal(s)
	if err != nil {
		t.Error(err)
	}
	other := in
	other.Objects = slices.Clone(in.Objects)
	slices.Reverse(other.Objects)
	if again, _ := json.Marshal(story.Tell(other)); !bytes.Equal(first, again) {
		t.Errorf("not the same story for the same objects in another order:\n%s\n%s", first, again)
	}
}

// corpus returns histories in which most rules find something.
func corpus(t testing.TB) (all []story.Input) {
	l := failedRollout(t)
	l.initial(node("True", "", "", ""))
	l.put(20, node("Unknown", "NodeStatusUnknown", "m", "unschedulable: true"))
	l.put(21, pod("web-b-1", "web-b", `, deletionTimestamp: "2026-01-02T14:00:10Z"`, "", strings.Replace(disruption, "%s", "DeletionByTaintManager", 1)))
	l.event(22, "e.1", "Warning", "FailedCreate", `pods "a" is forbidden: exceeded quota: q`, "ReplicaSet", "web-b")
	l.put(23, `{kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {kind: Deployment, name: web}}, status: {conditions: [{type: ScalingActive, status: "False", reason: R}]}}`)
	l.put(24, `{kind: ConfigMap, metadata: {name: settings}, data: {a: b}}`)
	l.put(25, `{kind: Job, metadata: {name: j}, status: {conditions: [{type: Failed, status: "True", reason: R}]}}`)
	l.put(26, alone("single", usesConfig, badImage))
	l.put(27, `{kind: Namespace, metadata: {name: old, deletionTimestamp: "2026-01-02T14:00:10Z", finalizers: [f]}}`)
	return append(all, l.input("Deployment/web", 90), l.input("Pod/web-b-1", 90), l.input("Node/n1", 90))
}

// TestProperties: whatever is missing of a history, and in whatever versions, the story has
// the properties of all stories.
func TestProperties(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, in := range corpus(t) {
			verify(t, in, story.Tell(disturb(r, &in)))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// disturb drops objects and versions, moves some, and exchanges kinds and words of objects.
func disturb(r *rand.Rand, in *story.Input) story.Input {
	words := []string{`"Pod"`, `"Node"`, `"Event"`, `"Deployment"`, `"True"`, `"False"`, `"Unknown"`, `1`, `[]`, `{}`, `null`, `"CrashLoopBackOff"`, `"uid-Deployment-web"`, `"web"`, `-1`}
	out := *in
	out.Objects = nil
	for _, o := range in.Objects {
		if r.IntN(12) == 0 {
			continue
		}
		versions := o.Versions
		o.Versions = nil
		if r.IntN(8) == 0 {
			o.Initial = nil
		}
		seconds := map[time.Time]bool{}
		for _, v := range versions {
			if r.IntN(10) == 0 {
				continue
			}
			if r.IntN(6) == 0 {
				v.Time = v.Time.Add(time.Duration(r.IntN(100)) * time.Second)
			}
			if r.IntN(10) == 0 {
				v.Type = []kube.EventType{kube.Added, kube.Modified, kube.Deleted}[r.IntN(3)]
			}
			if r.IntN(4) == 0 {
				changed := v.Object.WithRow(v.Object.Row, v.Object.Columns)
				changed.JSON = mutate(r, changed.JSON, words)
				changed.Kind = []string{"Pod", "Node", "Deployment", "Job", "Namespace", changed.Kind, changed.Kind}[r.IntN(7)]
				v.Object = changed
			}
			seconds[v.Time] = true
			o.Versions = append(o.Versions, v)
		}
		slices.SortStableFunc(o.Versions, func(a, b story.Version) int { return a.Time.Compare(b.Time) })
		out.Objects = append(out.Objects, o)
	}
	*in = out
	return out
}

// mutate exchanges values of a JSON text.
func mutate(r *rand.Rand, text string, words []string) string {
	for range 1 + r.IntN(3) {
		i := strings.IndexByte(text[r.IntN(len(text)):], ':')
		if i < 0 {
			continue
		}
		end := strings.IndexAny(text[i:], ",}")
		if end > 0 {
			text = text[:i+1] + words[r.IntN(len(words))] + text[i+end:]
		}
	}
	return text
}

// FuzzTell: no object makes it fail.
func FuzzTell(f *testing.F) {
	for _, in := range corpus(f) {
		for _, o := range in.Objects {
			for _, v := range o.Versions {
				f.Add(v.Object.Kind, v.Object.JSON, in.Objects[0].Key.Name())
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind, text, _ string) {
		for _, in := range corpus(t) {
			key := kube.MakeKey("shop", "x")
			o := story.Object{Resource: kube.Resource{Version: "v1", Name: strings.ToLower(kind) + "s"}, Key: key}
			for i := range 3 {
				o.Versions = append(o.Versions, story.Version{Type: kube.Modified, Time: at(float64(i)), Object: &scan.Object{Key: key, UID: "u", RV: uint64(i + 1), Kind: kind, JSON: text}})
			}
			in.Objects = append(in.Objects, o)
			verify(t, in, story.Tell(in))
		}
	})
}
