// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const cborObjects = widgets + `---
apiVersion: v1
kind: ConfigMap
metadata: {name: text, namespace: default, labels: {color: red}, annotations: {empty: "", long: "<é&\n\"世界>"}}
data: {a: b, number: "5"}
binaryData: {bytes: AAECAwT/}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: empty, namespace: default}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden, namespace: default}
stringData: {password: "x"}
---
apiVersion: v1
kind: Service
metadata: {name: ports, namespace: default}
spec: {ports: [{name: a, port: 80, targetPort: http}, {name: b, port: 81, targetPort: 8081}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: none, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {app: none}}
  strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}
  template:
    metadata: {labels: {app: none}}
    spec: {containers: [{name: c, image: none, resources: {requests: {cpu: 100m, memory: 1Gi}}, env: [{name: E, value: ""}]}]}
`

const cborWidgets = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: full, namespace: default, labels: {color: red}}
spec:
  small: 1
  negative: -70000
  large: 9007199254740993
  half: 0.5
  third: 0.3333333333333333
  whole: 2.0
  huge: 1.0e+30
  yes: true
  no: false
  nothing: null
  text: "<é&\n\"世界>"
  date: "2026-11-21T12:00:00Z"
  empty: {}
  none: []
  list: [1, x, 2.5, {b: 1, a: [null, true]}, ""]
  a longer name that comes last in the order of lengths: ""
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: plain, namespace: default}
`

// ownRV matches the RV of a list or a bookmark.
var ownRV = regexp.MustCompile(`\bresourceVersion=\d+`)

// oldestRV finds the oldest RV that an API server has, which is its own, too.
var oldestRV = regexp.MustCompile(`(too old resource version: \d+) \(\d+\)`)

// TestCBOR compares the gateway's CBOR responses with the API server's, byte for
// byte except for the order of keys. It has its own cluster because CBOR is off
// by default.
func TestCBOR(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	c := startOwn(t, "--feature-gates", "CBORServingAndStorage=true")
	gateway, client, up := c.gateway(), c.client, c.up
	c.apply(cborObjects)
	c.command("wait", "--for=condition=Established", "crd/widgets.example.com")
	c.apply(cborWidgets)

	ask := func(client *http.Client, url, accept string) answer {
		t.Helper()
		a, err := ask(t.Context(), client, url, accept)
		if err != nil {
			t.Error(err)
			return answer{}
		}
		return a
	}
	from := "" // the requested RV
	rvOf := func(path string) string {
		t.Helper()
		var list struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.Unmarshal([]byte(ask(client, up+path, "application/json").body), &list); err != nil {
			t.Fatal(err)
		}
		return list.Metadata.ResourceVersion
	}
	served := func(verb string) int {
		t.Helper()
		metric := fmt.Sprintf(`watchkeeper_requests_total{code="200",source="cache",verb=%q} `, verb)
		_, after, _ := strings.Cut(ask(http.DefaultClient, gateway.Admin+"/metrics", "*/*").body, metric)
		n := 0
		fmt.Sscan(after, &n) //nolint:errcheck // no metric yet counts as 0
		return n
	}
	same := func(path, accept string) answer {
		t.Helper()
		watch := strings.Contains(path, "watch=1")
		var want answer
		difference := compared(watch || strings.Contains(path, "resourceVersion=0"), func() (string, error) {
			var wg sync.WaitGroup
			wg.Go(func() { want = ask(client, up+path, accept) })
			got := ask(http.DefaultClient, gateway.URL+path, accept)
			wg.Wait()
			for _, a := range []*answer{&want, &got} {
				if strings.HasPrefix(a.contentType, "application/cbor") {
					a.body = cborText(a.body)
				}
				a.body = oldestRV.ReplaceAllString(a.body, "$1 (N)")
				if !strings.Contains(path, "resourceVersion="+from) {
					a.body = listRV.ReplaceAllString(ownRV.ReplaceAllString(a.body, "resourceVersion=N"), `$1"N"`)
				}
			}
			if want == got && (!watch || want.body != "") {
				return "", nil
			}
			return fmt.Sprintf("%d %s, want %d %s\n%s", got.code, got.contentType, want.code, want.contentType, cmp.Diff(want.body, got.body)), nil
		})
		if difference != "" {
			t.Errorf("%s as %s: %s", path, accept, difference)
		}
		return want
	}

	const as = ";g=meta.k8s.io;v="
	lists := 0
	for resource, object := range map[string]string{
		"/api/v1/%sconfigmaps": "text", "/api/v1/%ssecrets": "hidden", "/api/v1/%sservices": "ports", "/apis/apps/v1/%sdeployments": "none",
		"/apis/example.com/v1/%swidgets": "full", "/api/v1/nodes": "node-0", "/api/v1/namespaces": "default",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": "widgets.example.com", "/apis/batch/v1/%scronjobs": "none",
	} {
		all, one := resource, resource+"/"+object
		if strings.Contains(resource, "%s") {
			all, one = fmt.Sprintf(resource, ""), fmt.Sprintf(resource, "namespaces/default/")+"/"+object
		}
		cached(t, gateway, all+"?resourceVersion=0")
		from = rvOf(all)
		for _, accept := range []string{
			"application/cbor", "application/cbor-seq", "application/cbor;stream=watch", "application/json;q=0.5, application/cbor",
			"application/cbor;as=Table" + as + "v1", "application/cbor;as=Table" + as + "v1, application/json",
			"application/cbor;as=PartialObjectMetadataList" + as + "v1", "application/cbor;as=PartialObjectMetadataList" + as + "v1beta1",
			"application/cbor;as=PartialObjectMetadata" + as + "v1", "application/cbor;as=PartialObjectMetadata" + as + "v1beta1",
		} {
			exact := "resourceVersionMatch=Exact&resourceVersion=" + from
			for _, query := range []string{"?" + exact, "?limit=1&" + exact, "?labelSelector=color%3Dred&" + exact, "?labelSelector=color%3Dnone&" + exact} {
				if same(all+query, accept).code == http.StatusOK {
					lists++
				}
			}
			same(all+"?resourceVersion=0", accept)
			same(one+"?resourceVersion=0", accept)
			same(one+"-not?resourceVersion=0", accept)
		}
	}
	if n := served("list"); n < lists || lists < 100 {
		t.Errorf("%d lists are from the cache, of %d", n, lists)
	}

	const watched = "/apis/example.com/v1/widgets"
	from = rvOf(watched)
	for _, label := range []string{"more=yes", "color=blue"} {
		c.command("label", "--overwrite", "widget/full", "widget/plain", "configmap/text", "configmap/empty", label)
	}
	c.command("delete", "widget/plain", "configmap/empty")
	before, watches := served("watch"), 0
	var wg sync.WaitGroup
	for _, path := range []string{watched, "/api/v1/configmaps"} {
		for _, accept := range []string{
			"application/cbor", "application/cbor;as=PartialObjectMetadata" + as + "v1", "application/cbor;as=PartialObjectMetadata" + as + "v1beta1",
		} {
			for _, query := range []string{"&resourceVersion=" + from, "&labelSelector=color%3Dred&resourceVersion=" + from, "&resourceVersion=0&allowWatchBookmarks=true"} {
				watches++
				wg.Go(func() {
					if events := same(path+"?watch=1&timeoutSeconds=1"+query, accept).body; !strings.Contains(events, "type=") {
						t.Errorf("%s %s: no events", path, query)
					}
				})
			}
		}
		for _, accept := range []string{"application/cbor-seq", "application/cbor;as=Table" + as + "v1", "application/cbor;as=Table" + as + "v1, application/json"} {
			wg.Go(func() { same(path+"?watch=1&timeoutSeconds=1&resourceVersion=0", accept) })
		}
		wg.Go(func() { same(path+"?watch=1&timeoutSeconds=1&resourceVersion=1", "application/cbor") })
	}
	wg.Wait()
	if n := served("watch") - before; n < watches {
		t.Errorf("%d watches are from the cache, of %d", n, watches)
	}
}

// cborText writes items of CBOR as text, with sorted map keys: the API server
// sends them in random order. It keeps what is not CBOR. Of the bookmarks of a
// watch it keeps only the end bookmark: whether a watch that is about to end sends
// another depends on the server's clock.
func cborText(data string) string {
	var out strings.Builder
	for rest := data; rest != ""; {
		text, more, ok := cborItem(rest)
		if !ok {
			return data
		}
		if rest = more; strings.HasSuffix(text, "\ntype=BOOKMARK}") && !strings.Contains(text, "k8s.io/initial-events-end=true") {
			continue
		}
		out.WriteString(text + "\n")
	}
	return out.String()
}

// cborItem writes the first item, which has a definite length.
func cborItem(s string) (text, rest string, ok bool) {
	if s == "" {
		return "", "", false
	}
	major, n, s := s[0]>>5, uint64(s[0]&31), s[1:]
	width := 0
	if n >= 24 {
		width = 1 << (n - 24)
		if n > 27 || len(s) < width {
			return "", "", false
		}
		n = 0
		for _, b := range []byte(s[:width]) {
			n = n<<8 | uint64(b)
		}
		s = s[width:]
	}
	items := 0
	switch major {
	case 2, 3: // bytes and text
		if uint64(len(s)) < n {
			return "", "", false
		}
		return map[byte]string{2: "", 3: "text "}[major] + s[:n], s[n:], true
	case 4:
		items = int(n)
	case 5:
		items = 2 * int(n)
	case 6:
		items = 1
	default: // numbers, true, false and null
		return fmt.Sprintf("<%d %d %d>", major, width, n), s, true
	}
	parts := make([]string, 0, 16)
	for range items {
		part, more, ok := cborItem(s)
		if !ok {
			return "", "", false
		}
		if s = more; major == 5 && len(parts)%2 == 1 && len(parts) > 0 {
			part = "=" + part
		}
		parts = append(parts, part)
	}
	switch major {
	case 4:
		return "[\n" + strings.Join(parts, ",\n") + "]", s, true
	case 6:
		return fmt.Sprintf("%d:", n) + parts[0], s, true
	}
	var pairs []string
	for i := 0; i < len(parts); i += 2 {
		pairs = append(pairs, parts[i]+parts[i+1])
	}
	slices.Sort(pairs)
	return "{\n" + strings.Join(pairs, ",\n") + "}", s, true
}
