// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/internal/testing/faultproxy"
	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// ends counts how watches ended, lists by reason, and failures.
type ends struct {
	mu     sync.Mutex
	counts map[string]int
}

func (e *ends) count(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[what]++
}

func (e *ends) read() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.counts)
}

func (e *ends) metrics(informer.Collection, func() informer.Status) informer.Metrics {
	return informer.Metrics{
		Watched: func(end string, _ time.Duration) { e.count(end) },
		Failed:  func(error) { e.count("failed") },
		Listed:  func(reason string, _ int, _ time.Duration) { e.count("list: " + reason) },
	}
}

// TestSilentWatch: a healthy proxy keeps the connection of a watch open, but stops
// forwarding (I12). The informer notices the missing bookmarks, opens a second
// watch, and resumes without a list: it receives each event of the API server's
// own watch, once and in order. The proxy's bookmarks come twice a second, so this
// takes ten seconds; with an API server's bookmarks, a minute apart, it takes two
// and a half minutes. Over TLS the protocol is HTTP/2, and both watches could
// share a connection.
func TestSilentWatch(t *testing.T) {
	inStage(t, quiet)
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			proxy, err := faultproxy.Start(faultproxy.Options{
				Upstream: cluster.Config, TLS: secure, Bookmarks: time.Second / 2,
				Draw: func(string, faultproxy.Kind, int) faultproxy.Fault { return faultproxy.Fault{Name: faultproxy.None} },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			base, err := url.Parse(proxy.URL())
			if err != nil {
				t.Fatal(err)
			}
			metrics := &ends{counts: map[string]int{}}
			src := informer.NewSource(base, &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true})
			i := informer.New(src, informer.Resource{Version: "v1", Name: "configmaps"}, informer.Raw(), informer.Options{
				Namespaces: []string{ns},
				Metrics:    metrics.metrics,
			})
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer cancel()
			var mu sync.Mutex
			var received []string
			i.Handle(informer.Handler[json.RawMessage]{Event: func(e informer.Event[json.RawMessage]) {
				if e.Initial {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				received = append(received, fmt.Sprintln(strings.Replace(string(e.Type), "UPDATED", "MODIFIED", 1), e.Key.Name, e.Ref().RV(), e.Coalesced || e.Inferred))
			}})
			all.Go(func() {
				if err := i.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			if err := i.WaitSynced(ctx); err != nil {
				t.Fatal(err)
			}
			from := i.Status().RV
			client := kubernetes.NewForConfigOrDie(cluster.Config).CoreV1().ConfigMaps(ns)
			last := ""
			follow := func() {
				t.Helper()
				late, done := context.WithTimeout(ctx, 3*time.Minute)
				defer done()
				last = churn(t, client)
				if err := i.WaitRV(late, last); err != nil {
					t.Fatal(err)
				}
			}
			follow()
			marked := proxy.Bookmarked()
			eventually(t, "more bookmarks", func() bool { return proxy.Bookmarked() > marked+4 })
			if n := proxy.Silence(); n != 1 {
				t.Fatalf("%d watches were open", n)
			}
			follow()
			follow() // through the second watch
			want := events(t, ns, from, last)
			eventually(t, "all events", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(received) >= len(want)
			})
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(received, want) {
				t.Errorf("got\n%s\nwant\n%s", received, want)
			}
			if got, want := metrics.read(), (map[string]int{"list: initial": 1, "silent": 1}); !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// churn deletes, recreates and changes config maps. It returns the RV of the last
// change.
func churn(t *testing.T, client typedcorev1.ConfigMapInterface) (last string) {
	t.Helper()
	err := client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=" + unselected})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		cm, err := client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m-", n)}}, metav1.CreateOptions{})
		if err == nil {
			cm.Data = map[string]string{"a": "b"}
			cm, err = client.Update(t.Context(), cm, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		last = cm.ResourceVersion
	}
	return last
}

// events returns the events of the API server's own watch of config maps up to an
// RV.
func events(t *testing.T, ns string, from uint64, to string) (all []string) {
	t.Helper()
	client, url := direct(t)
	resp, err := client.Get(fmt.Sprintf("%s/api/v1/namespaces/%s/configmaps?watch=1&timeoutSeconds=100&resourceVersion=%d", url, ns, from))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for frames := watchread.Lines(resp.Body); ; {
		f, err := readFrame(frames)
		if err != nil {
			t.Fatalf("the events up to %s: %v", to, err)
		}
		m := f.Object.Metadata
		all = append(all, fmt.Sprintln(f.Type, m.Name, m.ResourceVersion, false))
		if m.ResourceVersion == to {
			return all
		}
	}
}
