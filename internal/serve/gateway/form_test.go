// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// accept sends a GET with an Accept header.
func (b *bench) accept(path, accept string) (code int, contentType, body string) {
	b.t.Helper()
	req, _ := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.server.URL+path, nil)
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(text)
}

const (
	acceptProtobuf = "application/vnd.kubernetes.protobuf,application/json"
	acceptTable    = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
)

func TestForms(t *testing.T) {
	b := newBench(t, podList(10, pod("ns", "a", 3)))
	code, typ, body := b.accept("/api/v1/pods?resourceVersion=0", acceptProtobuf)
	list, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), []byte(body))
	if err != nil || code != 200 || typ != "application/vnd.kubernetes.protobuf" || list.(*corev1.PodList).Items[0].Name != "a" {
		t.Errorf("protobuf: %d %s %v %v", code, typ, list, err)
	}
	if code, typ, body := b.accept("/api/v1/namespaces/ns/pods/a?resourceVersion=0", "application/yaml"); code != 200 || typ != "application/yaml" || !strings.HasPrefix(body, "apiVersion: v1\n") {
		t.Errorf("YAML: %d %s %s", code, typ, body)
	}
	resp := b.open(t.Context(), "/api/v1/pods?watch=1&resourceVersion=0", "Accept", acceptProtobuf)
	defer resp.Body.Close()
	var size uint32
	if err := binary.Read(resp.Body, binary.BigEndian, &size); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, size)
	_, err = io.ReadFull(resp.Body, frame)
	if typ := resp.Header.Get("Content-Type"); typ != "application/vnd.kubernetes.protobuf;stream=watch" || !strings.Contains(string(frame), "ADDED") || err != nil {
		t.Errorf("protobuf watch: %s %q %v", typ, frame, err)
	}
	for path, accept := range map[string]string{
		"/api/v1/pods?resourceVersion=0":                                  acceptTable, // no rows are known
		"/api/v1/pods?resourceVersion=0&watch=1":                          "application/yaml",
		"/api/v1/pods?resourceVersion=0&x":                                "text/html",
		"/api/v1/pods?resourceVersion=0&y":                                "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		"/api/v1/namespaces/ns/pods/nope?resourceVersion=0":               acceptProtobuf,
		"/api/v1/pods?resourceVersion=0&includeObject=Everything&limit=1": acceptTable,
	} {
		if code, _, _ := b.accept(path, accept); code != http.StatusTeapot {
			t.Errorf("%s as %s is served: %d", path, accept, code)
		}
	}
}

// TestFormBecomesUnwritable: an event has a field that protobuf would lose. The watch
// ends, and the next one is passed through.
func TestFormBecomesUnwritable(t *testing.T) {
	b := newBench(t, podList(10))
	o, err := scan.ParseObject(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"11"},"spec":{"containers":null},"newField":1,"status":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	b.apply(kube.Added, o)
	const watch = "/api/v1/pods?watch=1&resourceVersion=10"
	if code, _, body := b.accept(watch, acceptProtobuf); code != 200 || body != "" {
		t.Errorf("%d %q", code, body)
	}
	if code, _, _ := b.accept(watch, acceptProtobuf); code != http.StatusTeapot {
		t.Errorf("again: %d", code)
	}
	lines, stop := b.watch("resourceVersion=10")
	defer stop()
	expect(t, lines, "ADDED a@11")
}

// TestOtherColumns: an event has other columns. The watch ends, and the next one begins
// with the new columns.
func TestOtherColumns(t *testing.T) {
	b := newBench(t, podList(10))
	for i, column := range []string{"Old", "New"} {
		rv := 11 + i
		f, err := scan.ParseFrame(fmt.Sprintf(`{"type":"MODIFIED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"},`+
			`"columnDefinitions":[{"name":%q}],"rows":[{"cells":["x"],"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","resourceVersion":"%d"}}}]}}`, rv, column, rv))
		if err != nil {
			t.Fatal(err)
		}
		b.apply(kube.Modified, f.Object)
	}
	const watch, table = "/api/v1/pods?watch=1&resourceVersion=", "application/json;as=Table;g=meta.k8s.io;v=v1"
	code, _, body := b.accept(watch+"10", table)
	if code != 200 || strings.Count(body, "\n") != 1 || !strings.Contains(body, `[{"name":"Old"}]`) {
		t.Errorf("from 10: %d %s", code, body)
	}
	lines, stop := b.watchAt(watch+"11", "Accept", table)
	defer stop()
	if line := <-lines; !strings.Contains(line, `[{"name":"New"}]`) {
		t.Errorf("from 11: %s", line)
	}
}

func TestWebSocket(t *testing.T) {
	b := newBench(t, podList(10, pod("ns", "a", 3)))
	url := "ws" + strings.TrimPrefix(b.server.URL, "http") + "/api/v1/pods?watch=1&resourceVersion=0&allowWatchBookmarks=1"
	ws, err := websocket.Dial(url, "", b.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	b.apply(kube.Modified, pod("ns", "a", 11))
	for _, want := range []string{"ADDED a@3", "BOOKMARK @10 end", "MODIFIED a@11"} {
		var text string
		if err := websocket.Message.Receive(ws, &text); err != nil {
			t.Fatal(err)
		}
		if got := brief(t, text); got != want && !(want == "ADDED a@3" && got == "ADDED a@11") {
			t.Fatalf("got %s, want %s", got, want)
		} else if got == "ADDED a@11" {
			return // the modification came first
		}
	}
}
