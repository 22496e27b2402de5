// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/kubeconfig"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
	"github.com/watchkeeper/watchkeeper/informer/zstd"
)

// A held is the RVs, by key, of the objects that an informer holds, and of those
// that one of its subscribers received.
type held struct {
	name string
	wait func(ctx context.Context, rv string) error
	// copied returns the RVs that the informer holds.
	copied func() map[string]string

	mu       sync.Mutex // guards what follows
	received map[string]string
	fault    string
}

// hold has an informer run until the context ends.
func hold[T any](ctx context.Context, all *sync.WaitGroup, name, ns string, i *informer.Informer[T]) *held {
	h := &held{name: name, received: map[string]string{}, wait: func(ctx context.Context, rv string) error { return i.WaitRV(ctx, rv) }}
	h.copied = func() map[string]string {
		got := map[string]string{}
		for key, ref := range i.All() {
			if raw, err := ref.Raw(); err != nil || strings.Contains(string(raw), "managedFields") {
				h.wrong("%s: %v, %s", key, err, raw)
			}
			if _, err := ref.Object(); err != nil {
				h.wrong("%s: %v", key, err)
			}
			if key.Namespace == ns {
				got[key.String()] = ref.RV()
			}
		}
		return got
	}
	all.Go(func() {
		if err := i.Run(ctx); err != nil {
			h.wrong("Run: %v", err)
		}
	})
	all.Go(func() {
		for e, err := range i.Events(ctx) {
			if err != nil || e.Key.Namespace != ns {
				continue
			}
			h.mu.Lock()
			rv, known := h.received[e.Key.String()]
			if known != (e.Type != informer.Added) || e.Type == informer.Updated && rv != e.Old.RV() {
				h.fault += fmt.Sprintf("%s of %s at %s, known is %q\n", e.Type, e.Key, e.Ref().RV(), rv)
			}
			if h.received[e.Key.String()] = e.New.RV(); e.Type == informer.Deleted {
				delete(h.received, e.Key.String())
			}
			h.mu.Unlock()
		}
	})
	return h
}

func (h *held) wrong(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault += fmt.Sprintf(format+"\n", args...)
}

func (h *held) last() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.received)
}

// unselected is a config map that every namespace has.
const unselected = "kube-root-ca.crt"

// TestInformers: informers of the API server and of the gateway, in each encoding
// and with each store, hold the current objects and report changes in order while
// objects are created, changed and deleted and the API server is killed.
func TestInformers(t *testing.T) {
	inStage(t, quietOutage)
	outages[quietOutage].Ready()
	ns := namespace(t)
	direct, err := kubeconfig.FromConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	through, err := informer.FromURL(gw.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait() // also where the test fails
	defer cancel()
	res := informer.Resource{Version: "v1", Name: "configmaps"}
	var holders []*held
	for name, src := range map[string]*informer.Source{"API server": direct, "gateway": through} {
		holders = append(holders,
			hold(ctx, &all, name+", protobuf", ns, typed.New[*corev1.ConfigMap](src, informer.Options{})),
			hold(ctx, &all, name+", protobuf, small log", ns, typed.New[*corev1.ConfigMap](src, informer.Options{Backlog: 1})),
			hold(ctx, &all, name+", metadata", ns, typed.NewMetadata(src, res, informer.Options{})),
			hold(ctx, &all, name+", metadata in JSON", ns, informer.New(src, res, informer.JSON[metav1.PartialObjectMetadata](), informer.Options{MetadataOnly: true})),
			hold(ctx, &all, name+", unstructured", ns, informer.New(src, res, typed.Unstructured(), informer.Options{Namespaces: []string{ns}})),
			hold(ctx, &all, name+", compressed", ns, informer.New(src, res, informer.JSON[corev1.ConfigMap](), informer.Options{Compression: zstd.New()})),
			hold(ctx, &all, name+", selected", ns, informer.New(src, res, informer.Raw(), informer.Options{Namespaces: []string{ns}, FieldSelector: "metadata.name!=" + unselected})),
		)
	}
	client := kubernetes.NewForConfigOrDie(cluster.Config).CoreV1().ConfigMaps(ns)
	last := ""
	for n := range 400 {
		name := fmt.Sprintf("m-%d", rand.IntN(20))
		cm, err := client.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			cm, err = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": fmt.Sprint(n)}}, metav1.CreateOptions{})
		case rand.IntN(3) == 0:
			err = client.Delete(ctx, name, metav1.DeleteOptions{})
		default:
			cm.Data = map[string]string{"n": fmt.Sprint(n)}
			cm, err = client.Update(ctx, cm, metav1.UpdateOptions{})
		}
		if err == nil {
			last = cm.ResourceVersion
		} else {
			time.Sleep(100 * time.Millisecond) // the API server is down
		}
		if n == 200 {
			outage(t, quietOutage, nil)
		}
	}
	eventually(t, "a write at the API server", func() bool {
		cm, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "last-"}}, metav1.CreateOptions{})
		if err == nil {
			last = cm.ResourceVersion
		}
		return err == nil
	})
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, cm := range list.Items {
		want[ns+"/"+cm.Name] = cm.ResourceVersion
	}
	for _, h := range holders {
		late, done := context.WithTimeout(ctx, 3*time.Minute)
		if err := h.wait(late, last); err != nil {
			t.Errorf("%s: %v", h.name, err)
		}
		done()
		want := maps.Clone(want)
		if strings.Contains(h.name, "selected") {
			delete(want, ns+"/"+unselected)
		}
		if got := h.copied(); !maps.Equal(got, want) {
			t.Errorf("%s holds %v\nwant %v", h.name, got, want)
		}
		eventually(t, "all events at "+h.name, func() bool { return maps.Equal(h.last(), want) })
	}
	cancel()
	all.Wait()
	for _, h := range holders {
		if h.fault != "" {
			t.Errorf("%s: %s", h.name, h.fault)
		}
	}
}
