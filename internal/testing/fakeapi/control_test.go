// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// inBubble runs a test with a server in virtual time; get sends a GET for Pods
// with a query.
func inBubble(t *testing.T, o fakeapi.Options, test func(t *testing.T, api *fakeapi.Server, get func(query string) (*http.Response, error))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New(o)
		network := fakeapi.NewNetwork(api)
		defer network.Close()
		test(t, api, func(query string) (*http.Response, error) {
			return network.Client().Get("http://api/api/v1/pods?" + query)
		})
	})
}

func wantCode(t *testing.T, get func(string) (*http.Response, error), query string, want int) {
	t.Helper()
	resp, err := get(query)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != want {
		t.Errorf("%s: %d, %v, want %d", query, resp.StatusCode, err, want)
	}
}

func pod(name string) string { return fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q}}`, name) }

// A follower reads a watch.
type follower struct {
	t     *testing.T
	lines *bufio.Reader
}

func follow(t *testing.T, get func(string) (*http.Response, error), query string) *follower {
	t.Helper()
	resp, err := get("watch=true&" + query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return &follower{t, bufio.NewReader(resp.Body)}
}

// want fails the test unless the next events, as "TYPE name@resourceVersion",
// "ERROR reason", "end" or "cut", come after the given time.
func (f *follower) want(after time.Duration, events ...string) {
	f.t.Helper()
	for _, want := range events {
		begun := time.Now()
		got := f.next()
		if got != want || time.Since(begun) != after {
			f.t.Errorf("%s after %v, want %s after %v", got, time.Since(begun), want, after)
		}
		after = 0
	}
}

func (f *follower) next() string {
	line, err := f.lines.ReadString('\n')
	switch {
	case err == io.EOF && line == "":
		return "end"
	case err != nil:
		return "cut"
	}
	var e struct {
		Type   string
		Object struct {
			Reason   string
			Metadata struct{ Name, ResourceVersion string }
		}
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return strings.TrimSpace(line)
	}
	if e.Type == "ERROR" {
		return "ERROR " + e.Object.Reason
	}
	return fmt.Sprintf("%s %s@%s", e.Type, e.Object.Metadata.Name, e.Object.Metadata.ResourceVersion)
}

func TestControl(t *testing.T) {
	inBubble(t, fakeapi.Options{}, func(t *testing.T, api *fakeapi.Server, get func(string) (*http.Response, error)) {
		var seen []string
		api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
			seen = append(seen, fmt.Sprintf("%s %s %q", r.Verb, r.Resource.Name, r.Query.Get("limit")))
			next(w)
		})
		answer := func(query string) string {
			begun := time.Now()
			resp, err := get(query)
			if err != nil {
				return "cut"
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return fmt.Sprint(resp.StatusCode, err, time.Since(begun))
		}
		for name, test := range map[string]struct {
			control fakeapi.Control
			want    string
		}{
			"refuse": {func(w http.ResponseWriter, _ *fakeapi.Request, _ func(http.ResponseWriter)) {
				http.Error(w, "", http.StatusServiceUnavailable)
			}, "503 <nil> 0s"},
			"delay": {func(w http.ResponseWriter, _ *fakeapi.Request, next func(http.ResponseWriter)) {
				time.Sleep(time.Hour)
				next(w)
			}, "200 <nil> 1h0m0s"},
			"cut": {func(http.ResponseWriter, *fakeapi.Request, func(http.ResponseWriter)) { panic(http.ErrAbortHandler) }, "cut"},
			"half": {func(w http.ResponseWriter, _ *fakeapi.Request, next func(http.ResponseWriter)) {
				w.Header().Set("Content-Length", "1000")
				next(w)
			}, "200 unexpected EOF 0s"},
			"change": {func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
				r.Query.Set("resourceVersion", "9999")
				next(w)
			}, "504 <nil> 0s"},
		} {
			remove := api.Control(test.control)
			if got := answer("limit=7"); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
			remove()
		}
		if got := answer("limit=8"); got != "200 <nil> 0s" {
			t.Errorf("without: %s", got)
		}
		// Hooks that were added later are around those that were added earlier.
		if got := strings.Join(seen, ", "); !strings.HasSuffix(got, `list pods "8"`) || len(seen) != 4 {
			t.Errorf("%s", got)
		}
	})
}

// A garbler changes the output of a watch.
type garbler struct {
	http.ResponseWriter
	garble func([]byte) []byte
}

func (g *garbler) Unwrap() http.ResponseWriter { return g.ResponseWriter }

func (g *garbler) Write(b []byte) (int, error) {
	_, err := g.ResponseWriter.Write(g.garble(b))
	return len(b), err
}

// TestControlOfFrames: a hook's ResponseWriter gets complete frames.
func TestControlOfFrames(t *testing.T) {
	inBubble(t, fakeapi.Options{}, func(t *testing.T, api *fakeapi.Server, get func(string) (*http.Response, error)) {
		api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
			next(&garbler{w, func(b []byte) []byte {
				if b[len(b)-1] != '\n' {
					t.Errorf("%q is not complete", b)
				}
				if strings.Contains(string(b), `"b"`) {
					return []byte("<html>\n")
				}
				return b
			}})
		})
		f := follow(t, get, "resourceVersion=100")
		for name, want := range map[string]string{"a": "ADDED a@", "b": "<html>", "c": "ADDED c@"} {
			rv := api.Put("pods", pod(name))
			if strings.HasSuffix(want, "@") {
				want += fmt.Sprint(rv)
			}
			f.want(0, want)
		}
	})
}

func TestEndings(t *testing.T) {
	inBubble(t, fakeapi.Options{}, func(t *testing.T, api *fakeapi.Server, get func(string) (*http.Response, error)) {
		api.Put("pods", pod("a"))
		for _, test := range []struct {
			end  func()
			want []string
		}{
			{api.EndWatches, []string{"end"}},
			{api.CutWatches, []string{"cut"}},
			{func() { api.Expire() }, []string{"ERROR Expired", "end"}},
		} {
			f := follow(t, get, fmt.Sprint("resourceVersion=", api.RV()))
			synctest.Wait()
			test.end()
			f.want(0, test.want...)
		}
		// Expire removes the whole history, Compact the history before its RV.
		follow(t, get, "resourceVersion=101").want(0, "ERROR Expired", "end")
		open := follow(t, get, "resourceVersion=102")
		if rv := api.Advance(3); rv != 105 {
			t.Error(rv)
		}
		api.Compact(api.RV())
		api.Put("pods", pod("a"))
		open.want(0, "MODIFIED a@106")
		follow(t, get, "resourceVersion=104").want(0, "ERROR Expired", "end")
		follow(t, get, "resourceVersion=105").want(0, "MODIFIED a@106")
		wantCode(t, get, "resourceVersion=104&resourceVersionMatch=Exact", http.StatusGone)
	})
}

// TestBookmarkTimes: bookmarks come each minute and before the timeout, and are beyond
// the events of the resource only after a consistent read.
func TestBookmarkTimes(t *testing.T) {
	inBubble(t, fakeapi.Options{Step: 5}, func(t *testing.T, api *fakeapi.Server, get func(string) (*http.Response, error)) {
		f := follow(t, get, "resourceVersion=100&allowWatchBookmarks=true&timeoutSeconds=150")
		idle := follow(t, get, "resourceVersion=100&allowWatchBookmarks=true&timeoutSeconds=150")
		api.Put("pods", pod("a"))
		api.Advance(20)
		f.want(0, "ADDED a@105")
		idle.want(0, "ADDED a@105")
		f.want(time.Minute, "BOOKMARK @105")
		wantCode(t, get, "limit=1", http.StatusOK)
		f.want(time.Minute, "BOOKMARK @125")
		f.want(28*time.Second, "BOOKMARK @125")
		f.want(2*time.Second, "end")
		follow(t, get, "resourceVersion=125&allowWatchBookmarks=true").want(30*time.Minute, "end")
	})
}

func TestEagerBookmarks(t *testing.T) {
	inBubble(t, fakeapi.Options{EagerBookmarks: true}, func(t *testing.T, api *fakeapi.Server, get func(string) (*http.Response, error)) {
		f := follow(t, get, "resourceVersion=100&allowWatchBookmarks=true")
		f.want(0, "BOOKMARK @100")
		api.Put("pods", pod("a"))
		f.want(0, "ADDED a@101", "BOOKMARK @101")
		api.Advance(3)
		f.want(0, "BOOKMARK @104")
	})
}

// TestDeleteTogether: several objects are deleted at one resourceVersion.
func TestDeleteTogether(t *testing.T) {
	inBubble(t, fakeapi.Options{}, func(t *testing.T, api *fakeapi.Server, get func(string) (*http.Response, error)) {
		api.Put("pods", pod("a"))
		rv := api.Put("pods", pod("b"))
		api.Delete("pods", "ns/b", "ns/a")
		follow(t, get, fmt.Sprint("resourceVersion=", rv)).want(0, "DELETED b@103", "DELETED a@103")
		if len(api.All("pods")) > 0 || api.Get("pods", "ns/a") != "" {
			t.Error(api.All("pods"))
		}
	})
}

// TestRestore: a restore takes objects and the resourceVersion back to the backup, breaks
// the watches and leaves no earlier history.
func TestRestore(t *testing.T) {
	for bump, want := range map[uint64]string{0: "102", 1000: "1102"} {
		inBubble(t, fakeapi.Options{}, func(t *testing.T, api *fakeapi.Server, get func(string) (*http.Response, error)) {
			api.Put("pods", pod("a"))
			api.Put("pods", pod("b"))
			backup, before := api.Backup(), api.All("pods")
			api.Put("pods", pod("a"))
			api.Delete("pods", "ns/b")
			api.Put("pods", pod("c"))
			f := follow(t, get, "resourceVersion=105")
			api.Restore(backup, bump)
			f.want(0, "cut")
			if diff := cmp.Diff(before, api.All("pods")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if rv := fmt.Sprint(api.RV()); rv != want || backup.RV() != 102 {
				t.Errorf("the resourceVersion is %s, want %s; of the backup %d", rv, want, backup.RV())
			}
			wantCode(t, get, "resourceVersion=101&resourceVersionMatch=Exact", http.StatusGone)
			f = follow(t, get, "resourceVersion="+want)
			next := api.Put("pods", pod("b"))
			f.want(0, fmt.Sprint("MODIFIED b@", next))
			api.Restore(backup, bump) // again
			wantCode(t, get, "resourceVersion="+want, http.StatusOK)
		})
	}
}

func TestOptions(t *testing.T) {
	o := fakeapi.Options{
		NoWatchList: true, ClusterUID: "c",
		Allow: func(r *fakeapi.Request, a authorizationv1.ResourceAttributes) bool {
			return r.Header.Get("Authorization") == "" && a.Verb == "get"
		},
	}
	inBubble(t, o, func(t *testing.T, _ *fakeapi.Server, get func(string) (*http.Response, error)) {
		wantCode(t, get, "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", http.StatusUnprocessableEntity)
	})
	synctest.Test(t, func(t *testing.T) {
		network := fakeapi.NewNetwork(fakeapi.New(o))
		for verb, want := range map[string]string{"get": `"allowed":true`, "list": `"allowed":false`} {
			resp, err := network.Client().Post("http://x/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json",
				strings.NewReader(fmt.Sprintf(`{"spec":{"resourceAttributes":{"verb":%q}}}`, verb)))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !strings.Contains(string(body), want) {
				t.Errorf("%s: %s %v", verb, body, err)
			}
		}
		network.Close()
		if _, err := network.Client().Get("http://x/"); err == nil {
			t.Error("a closed network answers")
		}
	})
}
