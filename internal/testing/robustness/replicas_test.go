// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// TestReplicas runs a gateway in front of two API servers, each request to the other one.
// Consistent reads have the newest objects while one of them lags, and the gateway follows
// when etcd is restored from a snapshot.
func TestReplicas(t *testing.T) {
	clustertest.SkipShort(t)
	c, err := clustertest.Start(0, "--apiservers", "2", "--balance", "request")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g, err := startGateway(t, c)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Terminate()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(name string) {
		t.Helper()
		must(kubectl(c, "create", "configmap", name))
	}
	client := g.http(false)
	has := func(query, name string) (bool, error) {
		text, err := get(t.Context(), client, g.URL+"/api/v1/namespaces/default/configmaps"+query)
		return strings.Contains(text, `"name":"`+name+`"`), err
	}
	follows := func(name string, want bool) {
		t.Helper()
		for deadline := time.Now().Add(clusterTimeout); ; time.Sleep(50 * time.Millisecond) {
			got, err := has("?resourceVersion=0", name)
			if err == nil && got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s in the gateway's list: %v, %v after %v; its log:\n%s", name, got, err, clusterTimeout, g.Log())
			}
		}
	}

	create("first")
	follows("first", true)
	for i, lagging := range []string{"kube-apiserver", "kube-apiserver-2"} {
		must(c.Lag(lagging))
		name := fmt.Sprint("lag-", i)
		create(name)
		for range 2 { // one for each API server
			if ok, err := has("", name); err != nil || !ok {
				t.Errorf("while %s lags, a consistent list has the newest object: %v, %v", lagging, ok, err)
			}
		}
		must(c.Lag(lagging, "--off"))
		follows(name, true)
	}

	file := filepath.Join(t.TempDir(), "snapshot.db")
	_, err = c.Snapshot(file)
	must(err)
	create("lost")
	follows("lost", true)
	must(c.Restore(file, "--keep-running", "--bump-revision", "1000000"))
	follows("lost", false)
	create("found")
	follows("found", true)
}

// get returns the body of an answer.
func get(ctx context.Context, client *http.Client, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, text)
	}
	return string(text), err
}
