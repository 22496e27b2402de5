// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const apiService = `
apiVersion: v1
kind: Service
metadata: {name: life, namespace: default}
spec: {type: ExternalName, externalName: localhost, ports: [{port: PORT}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.life.example.org}
spec:
  group: life.example.org
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {name: life, namespace: default, port: PORT}
`

// register registers a server for the version v1 of the group NAME.example.org. It returns
// the manifest.
func register(t *testing.T, name string, server http.Handler) string {
	t.Helper()
	https := httptest.NewUnstartedServer(server)
	https.Config.ErrorLog = log.New(io.Discard, "", 0) // tests drop connections
	https.StartTLS()
	t.Cleanup(https.Close)
	address, err := url.Parse(https.URL)
	if err != nil {
		t.Fatal(err)
	}
	manifest := strings.NewReplacer("life", name, "PORT", address.Port()).Replace(apiService)
	apply(t, manifest)
	t.Cleanup(func() {
		_ = cluster.Kubectl(context.Background(), "delete", "apiservice/v1."+name+".example.org", "service/"+name, "--ignore-not-found").Run()
		https.CloseClientConnections() // watches that are open
	})
	return manifest
}

// TestAggregated registers an aggregated API with every kind of resource, makes
// it unavailable and available again, and removes it. Responses through the
// gateway are those of the API server.
//
// It has its own gateway because it counts the lists from the cache and waits for
// the gateway's timeouts.
func TestAggregated(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	mine, err := cluster.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Terminate()
	server := newAggregate()
	server.set("one", map[string]string{"color": "red"})
	server.set("two", map[string]string{"color": "blue"})
	manifest := register(t, "life", server)
	client, up := direct(t)
	const base = "/apis/life.example.org/v1"
	available := func(want string) {
		t.Helper()
		// A change makes the API server check availability at once.
		kubectl(t, "annotate", "--overwrite", "apiservice/v1.life.example.org", "available="+want)
		kubectl(t, "wait", "apiservice/v1.life.example.org", "--for=condition=Available="+want, "--timeout=150s")
	}
	same := func(when string, watch ...string) {
		t.Helper()
		var paths []string
		for _, resource := range []string{"", things, plains, unwatched, refusing, unlisted, forbidden, versionless, "nothing"} {
			for _, query := range append(watch,
				"", "?resourceVersion=0", "?resourceVersion=0&labelSelector=color%3Dred", "?resourceVersion=0&fieldSelector=metadata.name%3Done",
				"/one?resourceVersion=0", "/three?resourceVersion=0",
			) {
				paths = append(paths, base+strings.TrimSuffix("/"+resource, "/")+query)
			}
		}
		alike(t, mine, when, paths...)
	}
	fromCache := func(resource string) bool {
		before := servedLists(t, mine)
		get(t, http.DefaultClient, mine.URL+base+"/"+resource+"?resourceVersion=0")
		return servedLists(t, mine) > before
	}

	available("True")
	const watch = "?watch=1&resourceVersion=0&timeoutSeconds=1"
	same("in service", watch)
	for _, resource := range []string{things, plains} { // plains after the gateway has given up the streaming list
		eventually(t, "a list of "+resource+" from the cache", func() bool { return fromCache(resource) })
	}
	for _, resource := range []string{unwatched, refusing, unlisted, forbidden, versionless} {
		if fromCache(resource) {
			t.Errorf("a list of %s is from the cache", resource)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	followers := []pair{
		followBoth(ctx, t, mine, &wg, asJSON, base+"/"+things+"?x=")[0], followBoth(ctx, t, mine, &wg, asJSON, base+"/"+plains+"?x=")[0],
		followBoth(ctx, t, mine, &wg, asJSON, base+"/"+things+"?y=")[1],
	}
	server.set("three", nil)
	server.remove("two")
	server.set("one", map[string]string{"color": "green"})
	agree(t, "changed", followers)
	same("changed")

	server.setDown(true)
	available("False")
	same("out of service")
	server.set("four", nil)
	server.remove("one")
	server.setDown(false)
	available("True")
	agree(t, "back", followers)
	same("back", watch)
	for _, resource := range []string{things, plains} {
		eventually(t, "a list of "+resource+" from the cache again", func() bool { return fromCache(resource) })
	}

	kubectl(t, "delete", "apiservice/v1.life.example.org")
	eventually(t, "a removal of the API", func() bool {
		code, _ := get(t, client, up+base)
		return code == http.StatusNotFound
	})
	same("removed")
	apply(t, manifest)
	available("True")
	same("there again")
}
