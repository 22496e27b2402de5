// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// These are lines 7–10 of the walkthrough, part B: watching.

// A frame is one line of a watch.
type frame struct {
	Type   string
	Object struct {
		Kind, APIVersion string
		Code             int
		Message          string
		Metadata         struct {
			Name, Namespace, UID, ResourceVersion string
			Labels, Annotations                   map[string]string
		}
	}
	text string
}

// readFrame reads the next line of a watch. With an error, the frame has the text
// of the line, if there is one.
func readFrame(in *watchread.Reader) (frame, error) {
	w, err := in.Next()
	f := frame{Type: w.Type, text: string(w.Raw)}
	if err == nil {
		err = json.Unmarshal(w.Object, &f.Object)
	}
	return f, err
}

// curlWatch opens a watch with curl -N, and further arguments.
func curlWatch(t *testing.T, url string, args ...string) <-chan frame {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "curl", append(args, "-sSN", url)...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	frames := make(chan frame, 10000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(frames)
		for in := watchread.Lines(stdout); ; {
			f, err := readFrame(in)
			if f.text == "" {
				return
			}
			if err != nil {
				f.Type = "not JSON"
			}
			frames <- f
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done; _ = cmd.Wait() })
	return frames
}

// next returns the next frame with the type and the name. It fails on an earlier
// frame that skip does not accept.
func next(t *testing.T, frames <-chan frame, typ, name string, skip func(frame) bool) frame {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case f, ok := <-frames:
			if !ok {
				t.Fatalf("the stream ended before %s %s\n%s", typ, name, gw.Log())
			}
			if f.Type == typ && f.Object.Metadata.Name == name {
				return f
			}
			if skip == nil || !skip(f) {
				t.Fatalf("%s, want %s %s", f.text, typ, name)
			}
		case <-timeout:
			t.Fatalf("no %s %s\n%s", typ, name, gw.Log())
		}
	}
}

// others skips the events of other objects, and the object's status updates.
func others(name string) func(frame) bool {
	return func(f frame) bool { return f.Object.Metadata.Name != name || f.Type == "MODIFIED" }
}

const sleeper = `
apiVersion: v1
kind: ConfigMap
metadata: {name: "NAME", namespace: "NAMESPACE", labels: {color: "COLOR"}}
data: {a: b}
`

func configMap(t *testing.T, ns, name, color string) {
	t.Helper()
	apply(t, strings.NewReplacer("NAMESPACE", ns, "NAME", name, "COLOR", color).Replace(sleeper))
}

func TestB7WatchStaysOpen(t *testing.T) {
	inStage(t, quiet)
	ns := namespace(t)
	for _, query := range []string{"watch=1", "watch=1&resourceVersion=0"} {
		frames := curlWatch(t, gw.URL+"/api/v1/pods?"+query)
		skip := others("seven")
		kubectl(t, "-n", ns, "run", "seven", "--image=nginx:1")
		next(t, frames, "ADDED", "seven", skip)
		kubectl(t, "-n", ns, "label", "pod", "seven", "color=red")
		for f := next(t, frames, "MODIFIED", "seven", skip); f.Object.Metadata.Labels["color"] != "red"; {
			f = next(t, frames, "MODIFIED", "seven", skip)
		}
		kubectl(t, "-n", ns, "set", "image", "pod/seven", "seven=nginx:2")
		for f := next(t, frames, "MODIFIED", "seven", skip); !strings.Contains(f.text, `"nginx:2"`); {
			f = next(t, frames, "MODIFIED", "seven", skip)
		}
		kubectl(t, "-n", ns, "delete", "pod", "seven")
		next(t, frames, "DELETED", "seven", skip)
	}
}

func TestB8ListThenWatch(t *testing.T) {
	inStage(t, quiet)
	ns := namespace(t)
	path := gw.URL + "/api/v1/namespaces/" + ns + "/configmaps"
	configMap(t, ns, "before", "red")
	for _, version := range []string{"", "?resourceVersion=0"} {
		var list struct {
			Metadata struct{ ResourceVersion string }
			Items    []struct{ Metadata struct{ Name string } }
		}
		configMap(t, ns, "listed", "red")
		eventually(t, "the object in a list", func() bool {
			_, body := get(t, http.DefaultClient, path+version)
			return json.Unmarshal([]byte(body), &list) == nil && strings.Contains(body, `"listed"`)
		})
		configMap(t, ns, "after", "red")
		frames := curlWatch(t, path+"?watch=1&resourceVersion="+list.Metadata.ResourceVersion)
		next(t, frames, "ADDED", "after", nil) // not those of the list
		kubectl(t, "-n", ns, "delete", "configmap", "listed", "after")
		next(t, frames, "DELETED", "listed", nil)
		next(t, frames, "DELETED", "after", nil)
	}
}

func TestB9Selectors(t *testing.T) {
	inStage(t, quiet)
	ns := namespace(t)
	path := gw.URL + "/api/v1/configmaps?watch=true&fieldSelector="
	named := curlWatch(t, path+"metadata.name=n,metadata.namespace="+ns)
	elsewhere := curlWatch(t, path+"metadata.name=n,metadata.namespace=kube-public")
	red := curlWatch(t, gw.URL+"/api/v1/namespaces/"+ns+"/configmaps?watch=true&labelSelector=color=red")
	kubectl(t, "-n", "kube-public", "create", "configmap", "n")
	next(t, elsewhere, "ADDED", "n", nil)
	configMap(t, ns, "other", "blue")
	configMap(t, ns, "n", "blue")
	next(t, named, "ADDED", "n", nil)
	configMap(t, ns, "n", "red")
	next(t, named, "MODIFIED", "n", nil)
	next(t, red, "ADDED", "n", nil) // it begins to match
	configMap(t, ns, "n", "blue")
	if f := next(t, red, "DELETED", "n", nil); f.Object.Metadata.Labels["color"] != "red" {
		t.Errorf("the state that no longer matches is %s", f.text)
	}
	next(t, named, "MODIFIED", "n", nil)
	kubectl(t, "-n", ns, "delete", "configmap", "n", "other")
	next(t, named, "DELETED", "n", nil)
	kubectl(t, "-n", "kube-public", "delete", "configmap", "n")
	next(t, elsewhere, "DELETED", "n", nil)
	select {
	case f := <-red:
		t.Errorf("an object that never matches: %s", f.text)
	case f := <-named:
		t.Errorf("after its deletion: %s", f.text)
	default:
	}
}

func TestB10BookmarksAndResume(t *testing.T) {
	inStage(t, quiet)
	ns := namespace(t)
	base := gw.URL + "/api/v1/namespaces/" + ns + "/configmaps?watch=true&allowWatchBookmarks=true"
	var name, rv, last string
	for try := 1; last == ""; try++ {
		name = fmt.Sprint("ten", try)
		configMap(t, ns, name, "red")
		// Long enough for the change to come before the bookmark at the end.
		frames := curlWatch(t, base+"&timeoutSeconds=12&fieldSelector=metadata.name="+name)
		rv = next(t, frames, "ADDED", name, nil).Object.Metadata.ResourceVersion
		end := next(t, frames, "BOOKMARK", "", nil)
		if end.Object.Metadata.Annotations["k8s.io/initial-events-end"] != "true" || end.Object.Kind != "ConfigMap" {
			t.Errorf("the bookmark after the initial events is %s", end.text)
		}
		configMap(t, ns, name, "blue")
		changed, bookmark := "MODIFIED "+name+", ", "BOOKMARK , " // the bookmark is shortly before the end
		switch got, at := untilEnd(t, frames); {
		case got == changed+bookmark && at != "":
			last = at
		case try < 3 && slices.Contains([]string{"", changed, bookmark, bookmark + changed}, got):
			t.Logf("one of the two came too late for this watch: %q", got)
		default:
			t.Fatalf("until its end, the watch sent %q", got)
		}
	}
	configMap(t, ns, name, "green")
	frames := curlWatch(t, base+"&resourceVersion="+last+"&fieldSelector=metadata.name="+name)
	if f := next(t, frames, "MODIFIED", name, nil); f.Object.Metadata.Labels["color"] != "green" {
		t.Errorf("resumed from the bookmark: %s", f.text)
	}
	frames = curlWatch(t, base+"&resourceVersion="+rv+"&fieldSelector=metadata.name="+name)
	for _, color := range []string{"blue", "green"} {
		if f := next(t, frames, "MODIFIED", name, nil); f.Object.Metadata.Labels["color"] != color {
			t.Errorf("resumed from the first version: %s", f.text)
		}
	}
}

// untilEnd returns the types and names of a watch's remaining frames, and the RV of
// the last one.
func untilEnd(t *testing.T, frames <-chan frame) (all, rv string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case f, open := <-frames:
			if !open {
				return all, rv
			}
			all += f.Type + " " + f.Object.Metadata.Name + ", "
			rv = f.Object.Metadata.ResourceVersion
		case <-timeout:
			t.Fatalf("the watch continues after its timeoutSeconds: %q", all)
		}
	}
}

// TestB10TooOld: for an RV that neither the gateway nor the API server holds, the
// stream carries the API server's ERROR 410. The API server's watch cache begins
// at its start, so RV 1 has expired after a restart.
func TestB10TooOld(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quietOutage)
	outages[quietOutage].Ready()
	outage(t, quietOutage, nil)
	client, up := direct(t)
	const path = "/api/v1/configmaps?watch=1&resourceVersion=1"
	eventually(t, "the API server's own 410", func() bool {
		_, body := get(t, client, up+path+"&timeoutSeconds=1")
		return strings.Contains(body, `"code":410`)
	})
	frames := curlWatch(t, gw.URL+path)
	f := next(t, frames, "ERROR", "", nil)
	if f.Object.Code != 410 || !strings.HasPrefix(f.Object.Message, "too old resource version: 1 (") {
		t.Errorf("got %s", f.text)
	}
	if _, open := <-frames; open {
		t.Error("the stream continues after its ERROR")
	}
}
