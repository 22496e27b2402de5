// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A running is a running manager with a keeper.
type running struct {
	ctrl.Manager
	name string
	stop func()
	done chan struct{} // closed when it has ended
	err  error         // valid once done is closed
}

// managerOptions select the informers of a manager's cache.
type managerOptions func(*testing.T, *rest.Config) (*rest.Config, cache.Options)

func withClientGo(_ *testing.T, config *rest.Config) (*rest.Config, cache.Options) {
	return config, cache.Options{}
}

func withOurs(t *testing.T, config *rest.Config) (*rest.Config, cache.Options) {
	t.Helper()
	config, newInformer, err := clientgo.ForManager(config, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var made atomic.Int32
	t.Cleanup(func() {
		if n := made.Load(); n < 3 {
			t.Errorf("the manager has made %d informers, of 3 kinds", n)
		}
	})
	return config, cache.Options{NewInformer: func(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		made.Add(1)
		return newInformer(lw, o, resync, indexers)
	}}
}

// startManager starts a manager whose keeper works in a namespace once it is elected.
// Other managers of the namespace wait for the election.
func startManager(t *testing.T, at side, ns string, options managerOptions) *running {
	t.Helper()
	yes, timeout := true, 5*time.Minute // longer than the API server is down
	config, caches := options(t, at.config())
	caches.DefaultNamespaces = map[string]cache.Config{ns: {}}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Cache:   caches,
		Metrics: server.Options{BindAddress: "0"},
		// The name is of its metrics, of which there are none.
		Controller:                    controllers.Controller{SkipNameValidation: &yes},
		LeaderElection:                true,
		LeaderElectionNamespace:       ns,
		LeaderElectionID:              "keeper",
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(2 * timeout),
		RenewDeadline:                 &timeout,
		RetryPeriod:                   new(time.Second),
	})
	if err == nil {
		err = (&keeper{Client: mgr.GetClient()}).setUp(mgr)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Manager: mgr, name: string(at), stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = mgr.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
		if r.err != nil {
			t.Errorf("the manager %s ended: %v", at, r.err)
		}
	})
	return r
}

// elected waits until the manager leads.
func (r *running) elected(t *testing.T) {
	t.Helper()
	eventually(t, "a leader", func() string {
		select {
		case <-r.Elected():
			return ""
		case <-r.done:
			t.Fatalf("the manager %s ended: %v", r.name, r.err)
		default:
		}
		return r.name + " is not elected"
	})
}

// TestManager runs a manager with a reconciler against the API server, and one against
// the gateway, makes the same changes for both and meanwhile kills the API server
// WATCHKEEPER_KILLS times. Both have to produce the same objects, and their caches have
// to hold the API server's state.
func TestManager(t *testing.T) {
	clustertest.SkipShort(t)
	testManagers(t, "manager-", withClientGo)
}

// TestManagerInformers is the same with the informer library in the managers'
// caches.
func TestManagerInformers(t *testing.T) { testManagers(t, "informers-", withOurs) }

func testManagers(t *testing.T, prefix string, options managerOptions) {
	t.Helper()
	outages.Join(t)
	t.Parallel()
	user, err := client.New(direct.config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespaces := map[side]string{}
	managers := map[side]*running{}
	for _, at := range sides {
		namespaces[at] = namespace(t, prefix+string(at))
		managers[at] = startManager(t, at, namespaces[at], options)
		managers[at].elected(t)
	}
	standby := startManager(t, gateway, namespaces[gateway], options)

	outages.Ready()
	var wg sync.WaitGroup
	d := &demands{last: 100, made: map[string]int{namespaces[direct]: 0, namespaces[gateway]: 0}}
	for _, ns := range namespaces {
		wg.Go(func() { d.demand(t.Context(), t, user, ns) })
	}
	for range kills(t) {
		d.more(t, 20)
		outage(t)
	}
	d.more(t, 20)
	d.end()
	wg.Wait()
	n := compareOutcome(t, user, namespaces)
	t.Logf("%d ConfigMaps are equal on both sides, through %d kills of the API server", n, kills(t))
	for _, at := range sides {
		compareCache(t, user, managers[at], namespaces[at])
	}

	// The standby manager becomes the leader.
	select {
	case <-standby.Elected():
		t.Error("two managers lead at once")
	default:
	}
	managers[gateway].stop()
	<-managers[gateway].done
	standby.elected(t)
	for _, ns := range namespaces {
		if err := user.Create(t.Context(), newWidget(ns, "late", 7)); err != nil {
			t.Fatal(err)
		}
	}
	compareOutcome(t, user, namespaces)
	compareCache(t, user, standby, namespaces[gateway])
}

// demands are the changes that the keepers have to follow. Each is made in every
// namespace; there are 100, or more if the outages take longer.
type demands struct {
	mu    sync.Mutex     // guards what follows
	last  int            // the last change, once the outages have ended
	ended bool           // the outages have ended
	made  map[string]int // by namespace
}

// next reports whether the namespace gets another change after n changes.
func (d *demands) next(ns string, n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made[ns] = n
	return n < d.last || !d.ended
}

// more waits until n more changes have been made in each namespace.
func (d *demands) more(t *testing.T, n int) {
	t.Helper()
	made := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return slices.Min(slices.Collect(maps.Values(d.made)))
	}
	enough := made() + n
	eventually(t, "changes", func() string {
		if have := made(); have < enough {
			return fmt.Sprintf("%d, want %d", have, enough)
		}
		return ""
	})
}

// end stops the changes once every namespace has got the same ones.
func (d *demands) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	for _, n := range d.made {
		d.last = max(d.last, n+1) // which may be in progress
	}
}

// demand makes the changes in a namespace that the keeper has to follow. Each namespace
// gets the same ones: a change is tried until it succeeds.
func (d *demands) demand(ctx context.Context, t *testing.T, user client.Client, ns string) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := 0; ctx.Err() == nil && d.next(ns, i); i++ {
		name := fmt.Sprintf("w%d", random.IntN(12))
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = ns, fmt.Sprintf("s%d", random.IntN(8))
		secret.Labels = map[string]string{"widget": name}
		own := &corev1.ConfigMap{}
		own.Namespace, own.Name = ns, name
		w := newWidget(ns, name, int64(i))
		var change func() error
		switch random.IntN(8) {
		case 0:
			change = func() error { return client.IgnoreNotFound(user.Delete(ctx, w)) }
		case 1:
			change = func() error { return client.IgnoreAlreadyExists(user.Create(ctx, secret)) }
		case 2:
			change = func() error { return client.IgnoreNotFound(user.Delete(ctx, secret)) }
		case 3: // the keeper has to recreate it
			change = func() error { return client.IgnoreNotFound(user.Delete(ctx, own)) }
		default:
			// A widget that is being deleted cannot be changed into one that is not;
			// wait until it is gone.
			change = func() error {
				held := newWidget(ns, name, 0)
				err := user.Get(ctx, client.ObjectKeyFromObject(w), held)
				switch {
				case apierrors.IsNotFound(err):
					return user.Create(ctx, newWidget(ns, name, int64(i)))
				case err != nil:
					return err
				case held.GetDeletionTimestamp() != nil:
					return fmt.Errorf("%s is being deleted", name)
				}
				held.Object["spec"] = w.Object["spec"]
				return user.Update(ctx, held)
			}
		}
		for end := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			err := change()
			if err == nil || ctx.Err() != nil {
				break
			}
			if time.Now().After(end) {
				t.Errorf("change %d in %s: %v", i, ns, err)
				return
			}
		}
		time.Sleep(120 * time.Millisecond)
	}
}

// compareOutcome waits until the keepers have produced the same correct objects in both
// namespaces. It returns their number.
func compareOutcome(t *testing.T, user client.Client, namespaces map[side]string) (n int) {
	t.Helper()
	eventually(t, "the same outcome", func() string {
		want, problem := outcome(t.Context(), user, namespaces[direct])
		if problem != "" {
			return "direct: " + problem
		}
		got, problem := outcome(t.Context(), user, namespaces[gateway])
		if problem != "" {
			return "gateway: " + problem
		}
		if len(want) == 0 {
			return "no objects"
		}
		n = len(want)
		return cmp.Diff(want, got)
	})
	return n
}

// outcome describes the objects in a namespace, and returns the first problem.
func outcome(ctx context.Context, user client.Client, ns string) (state []string, problem string) {
	all := widgetList()
	var configMaps corev1.ConfigMapList
	var secrets corev1.SecretList
	for _, list := range []client.ObjectList{all, &configMaps, &secrets} {
		if err := user.List(ctx, list, client.InNamespace(ns)); err != nil {
			return nil, err.Error()
		}
	}
	names := map[string][]string{}
	for _, s := range secrets.Items {
		names[s.Labels["widget"]] = append(names[s.Labels["widget"]], s.Name)
	}
	wanted := map[string]map[string]string{}
	for _, w := range all.Items {
		size, _, _ := unstructured.NestedInt64(w.Object, "spec", "size")
		seen, _, _ := unstructured.NestedInt64(w.Object, "status", "size")
		if w.GetDeletionTimestamp() != nil || seen != size || len(w.GetFinalizers()) != 1 {
			return nil, fmt.Sprintf("%s of size %d has status %d, finalizers %v, deletion %v", w.GetName(), size, seen, w.GetFinalizers(), w.GetDeletionTimestamp())
		}
		wanted[w.GetName()] = map[string]string{"size": fmt.Sprint(size), "secrets": strings.Join(names[w.GetName()], " ")}
	}
	got := map[string]map[string]string{}
	for _, c := range configMaps.Items {
		if c.Name != "kube-root-ca.crt" {
			got[c.Name] = c.Data
			state = append(state, fmt.Sprint(c.Name, c.Data, len(c.OwnerReferences)))
		}
	}
	return state, cmp.Diff(wanted, got)
}

// compareCache waits until a manager's cache holds the API server's state.
func compareCache(t *testing.T, user client.Client, m *running, ns string) {
	t.Helper()
	for _, list := range []func() client.ObjectList{
		func() client.ObjectList { return widgetList() },
		func() client.ObjectList { return &corev1.ConfigMapList{} },
		func() client.ObjectList { return secretList() },
	} {
		eventually(t, "the same in the cache "+m.name, func() string {
			held, err := versions(t.Context(), m.GetCache(), list(), ns)
			if err != nil {
				return err.Error()
			}
			want, err := versions(t.Context(), user, list(), ns)
			if err != nil {
				return err.Error()
			}
			return cmp.Diff(want, held)
		})
	}
}

// versions lists, name → UID and RV.
func versions(ctx context.Context, from client.Reader, list client.ObjectList, ns string) (map[string]string, error) {
	if err := from.List(ctx, list, client.InNamespace(ns)); err != nil {
		return nil, err
	}
	all := map[string]string{}
	return all, eachItem(list, func(o client.Object) {
		all[o.GetName()] = string(o.GetUID()) + " " + o.GetResourceVersion()
	})
}

var widgetKind = schema.GroupVersionKind{Group: widgets.Group, Version: widgets.Version, Kind: "Widget"}

func newWidget(ns, name string, size int64) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: object{"spec": object{"size": size}}}
	w.SetGroupVersionKind(widgetKind)
	w.SetNamespace(ns)
	w.SetName(name)
	return w
}

func widgetList() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(widgetKind.GroupVersion().WithKind("WidgetList"))
	return l
}
