// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	replicas = 3
	// watches of client-go informers, on as many connections as a node would have.
	watches, connections = 1000, 10
	writeEvery           = 200 * time.Millisecond
)

// TestRollingUpdate: three Pods are replaced one after the other, as a StatefulSet does it,
// while a thousand informers watch through their Service. No informer misses an event, gets
// one twice, or lists again; no Pod lists from the API server what it has recorded.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	for i := range replicas {
		makeVolume(t, fmt.Sprintf("rolling-%d", i), "rolling")
	}
	const drain = 2
	namespace, _ := install(t, map[string]any{"replicas": replicas, "drainSeconds": drain,
		"recording": map[string]any{"enabled": true, "resources": []any{"core", "configmaps"}, "volume": map[string]any{"size": "1Gi", "storageClass": "rolling", "whenDeleted": "Delete"}}})
	all := pods(t, namespace, replicas)
	service := newBalancer(t)
	volumes, running := make([]map[string]string, replicas), make([]*process, replicas)
	begin := func(i int) {
		t.Helper()
		running[i] = run(t, &all[i], volumes[i])
		eventually(t, "recording", func(context.Context) error {
			if running[i].metric(t, "watchkeeper_history_up") != "1" {
				return errors.New(running[i].Log())
			}
			return nil
		})
		service.add(strings.TrimPrefix(running[i].URL, "https://"))
	}
	for i, pod := range all {
		dir := t.TempDir()
		if err := os.Chown(dir, int(*pod.Spec.SecurityContext.RunAsUser), int(*pod.Spec.SecurityContext.FSGroup)); err != nil {
			t.Fatal(err)
		}
		volumes[i] = map[string]string{"history": dir}
		begin(i)
	}

	token, err := cluster.AdminToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWitness(t, clientConfig(t, namespace, service.url(), token), namespace)
	write, stop := w.writer(t, namespace)
	for i := replicas - 1; i >= 0; i-- { // as a StatefulSet does it
		old := running[i]
		service.remove(strings.TrimPrefix(old.URL, "https://"))
		time.Sleep(drain * time.Second) // the hook of the container
		listed := old.listed(t, client(t, namespace, old.URL, token))
		if code := old.Terminate(); code != 128+int(syscall.SIGTERM) && code != 0 {
			t.Errorf("%s ended with %d:\n%s", all[i].Name, code, old.Log())
		}
		if listed == "" { // it had nothing recorded
			t.Errorf("%s has not listed", all[i].Name)
		}
		begin(i)
		time.Sleep(time.Second)
	}
	stop()
	w.judge(t, <-write)
	for i, p := range running {
		if listed := p.listed(t, client(t, namespace, p.URL, token)); listed != "" {
			t.Errorf("%s has listed what it had recorded: %s", all[i].Name, listed)
		}
	}
}

// listed returns the metrics of the lists of what the informers watch, once a client has
// made it cached.
func (p *process) listed(t *testing.T, c kubernetes.Interface) (all string) {
	t.Helper()
	eventually(t, "cache", func(ctx context.Context) error {
		if _, err := c.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"}); err != nil {
			return err
		}
		if p.metric(t, `watchkeeper_resource_synced{resource="configmaps.v1"}`) != "1" {
			return errors.New("not synced")
		}
		return nil
	})
	text, err := p.get(t, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "watchkeeper_resource_relists_total{") && strings.Contains(line, `"configmaps.v1"`) {
			all += line
		}
	}
	return all
}

// A witness has a thousand informers, and what each has been told.
type witness struct {
	lists    atomic.Int64 // requests for a list, also of a streaming one
	first    int64        // those until all had synced; some are repeated, after a 429
	mu       sync.Mutex   // guards the fields below
	seen     []map[int]int
	delays   []time.Duration
	disorder []string
	errors   []string // after which informers list again
}

func newWitness(t *testing.T, config *rest.Config, namespace string) *witness {
	t.Helper()
	if _, err := api.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "told"}, Data: map[string]string{"n": "0"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w := &witness{seen: make([]map[int]int, watches)}
	var synced []cache.InformerSynced
	ctx, cancel := context.WithCancel(t.Context())
	var informing sync.WaitGroup
	t.Cleanup(func() { cancel(); informing.Wait() })
	var client kubernetes.Interface
	for i := range watches {
		if i%(watches/connections) == 0 {
			c := rest.CopyConfig(config)
			c.Dial = (&net.Dialer{}).DialContext // its own transport
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return counted(func(r *http.Request) (*http.Response, error) {
					if q := r.URL.Query(); r.Method == http.MethodGet && (q.Get("watch") == "" || q.Get("sendInitialEvents") == "true") {
						w.lists.Add(1)
					}
					return next.RoundTrip(r)
				})
			})
			var err error
			if client, err = kubernetes.NewForConfig(c); err != nil {
				t.Fatal(err)
			}
		}
		w.seen[i] = map[int]int{}
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = "metadata.name=told"
		}))
		informer := factory.Core().V1().ConfigMaps().Informer()
		if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.errors = append(w.errors, err.Error())
		}); err != nil {
			t.Fatal(err)
		}
		last := 0
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
			m := object.(*corev1.ConfigMap)
			n, _ := strconv.Atoi(m.Data["n"])
			at, _ := time.Parse(time.RFC3339Nano, m.Data["at"])
			delay := time.Since(at)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen[i][n]++
			w.delays = append(w.delays, delay)
			if n != last+1 {
				w.disorder = append(w.disorder, fmt.Sprintf("informer %d: %d after %d", i, n, last))
			}
			last = n
		}})
		if err != nil {
			t.Fatal(err)
		}
		informing.Go(func() { informer.Run(ctx.Done()) })
		synced = append(synced, informer.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		t.Fatal("the informers have not synced")
	}
	w.first = w.lists.Load()
	return w
}

// counted is a round tripper.
type counted func(*http.Request) (*http.Response, error)

func (f counted) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// writer updates the object until stop is called, and then sends how often.
func (w *witness) writer(t *testing.T, namespace string) (written chan int, stop func()) {
	t.Helper()
	written = make(chan int, 1)
	done := make(chan struct{})
	stop = sync.OnceFunc(func() { close(done) })
	var writing sync.WaitGroup
	t.Cleanup(func() { stop(); writing.Wait() })
	writing.Go(func() {
		for n := 1; ; n++ {
			patch := fmt.Sprintf(`{"data":{"n":"%d","at":%q}}`, n, time.Now().Format(time.RFC3339Nano))
			if _, err := api.CoreV1().ConfigMaps(namespace).Patch(t.Context(), "told", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil && t.Context().Err() == nil {
				t.Errorf("update %d: %v", n, err)
			}
			select {
			case <-done:
				written <- n
				return
			case <-time.After(writeEvery):
			}
		}
	})
	return written, stop
}

// judge fails if an informer has not seen every update once, in order, or has listed again.
func (w *witness) judge(t *testing.T, written int) {
	t.Helper()
	eventually(t, "all updates at all informers", func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, seen := range w.seen {
			if seen[written] == 0 {
				return fmt.Errorf("informer %d has seen %d of %d updates", i, len(seen), written)
			}
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, seen := range w.seen {
		for n := range written {
			if seen[n+1] != 1 {
				t.Errorf("informer %d has seen update %d %d times", i, n+1, seen[n+1])
			}
		}
		if extra := len(seen) - written; extra != 0 {
			t.Errorf("informer %d has seen %d other updates: %v", i, extra, slices.Sorted(maps.Keys(seen)))
		}
	}
	if len(w.disorder) > 0 {
		t.Errorf("%d times out of order: %s", len(w.disorder), w.disorder[0])
	}
	if n := w.lists.Load() - w.first; n != 0 {
		slices.Sort(w.errors)
		t.Errorf("%d lists by %d informers that had synced, after %q", n, watches, slices.Compact(w.errors))
	}
	slices.Sort(w.delays)
	t.Logf("%d informers have seen %d updates; p50 %v, p99 %v, longest %v after the write", watches, written,
		w.delays[len(w.delays)/2], w.delays[len(w.delays)*99/100], w.delays[len(w.delays)-1])
}
