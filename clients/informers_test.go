// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A selection selects the objects of an informer.
type selection struct {
	resource       schema.GroupVersionResource
	everywhere     bool // in all namespaces
	labels, fields string
}

func (s selection) String() string {
	return strings.TrimRight(strings.Join([]string{s.resource.Resource, s.labels, s.fields}, " "), " ")
}

func (s selection) apply(o *metav1.ListOptions) {
	o.LabelSelector, o.FieldSelector = s.labels, s.fields
}

var selections = []selection{
	{resource: pods, everywhere: true},
	{resource: pods, fields: "spec.nodeName=node-1"},
	{resource: pods, everywhere: true, labels: "color in (red,green)", fields: "status.phase!=Pending"},
	{resource: configMaps, everywhere: true},
	{resource: configMaps, labels: "color=red"},
	{resource: configMaps, fields: "metadata.name=churn-1"},
	{resource: deployments, everywhere: true, labels: "color!=blue"},
	{resource: widgets, everywhere: true},
	{resource: widgets, labels: "color"},
	{resource: widgets, fields: "spec.color=red"},
}

// A flavour is a form in which client-go holds objects. typed requests protobuf,
// metadata requests protobuf of the metadata, dynamic requests JSON, and dynamicCBOR
// requests CBOR, or JSON if CBOR is not served.
type flavour string

const (
	typed       flavour = "typed"
	dynamicJSON flavour = "dynamic"
	dynamicCBOR flavour = "dynamic-cbor"
	metaOnly    flavour = "metadata"
)

// informer makes a shared informer with the usual factory.
func (f flavour) informer(config *rest.Config, ns string, s selection) (cache.SharedIndexInformer, error) {
	if s.everywhere {
		ns = metav1.NamespaceAll
	}
	switch f {
	case typed:
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns), informers.WithTweakListOptions(s.apply))
		informer, err := factory.ForResource(s.resource)
		if err != nil {
			return nil, err
		}
		return informer.Informer(), nil
	case metaOnly:
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewFilteredSharedInformerFactory(client, 0, ns, s.apply).ForResource(s.resource).Informer(), nil
	default:
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, ns, s.apply).ForResource(s.resource).Informer(), nil
	}
}

// A held is a running informer.
type held struct {
	cache.SharedIndexInformer
	*observer
	tally
}

// A pair is the same informer at the API server and through the gateway.
type pair struct {
	selection
	at map[side]*held
}

// A group is the informers of one flavour.
type group struct {
	name  string
	pairs []*pair
}

// setGate sets one of client-go's feature gates. Informers read them when they start,
// clients when they are created.
func setGate(t *testing.T, name features.Feature, on bool) {
	t.Helper()
	gates, ok := features.FeatureGates().(interface {
		Set(features.Feature, bool) error
	})
	if !ok {
		t.Fatalf("client-go's feature gates are %T", features.FeatureGates())
	}
	if err := gates.Set(name, on); err != nil {
		t.Fatal(err)
	}
}

// startGroup starts all informers of a flavour, and waits until they have
// their initial state.
func startGroup(ctx context.Context, t *testing.T, wg *sync.WaitGroup, ns string, f flavour, watchList bool) *group {
	t.Helper()
	setGate(t, features.WatchListClient, watchList)
	setGate(t, features.ClientsAllowCBOR, f == dynamicCBOR)
	setGate(t, features.ClientsPreferCBOR, f == dynamicCBOR)
	g := &group{name: string(f)}
	if watchList {
		g.name += "-watchlist"
	}
	for _, s := range selections {
		if f == typed && s.resource == widgets {
			continue // it has no generated types
		}
		p := &pair{s, map[side]*held{}}
		for _, at := range sides {
			h := &held{observer: newObserver()}
			var err error
			if h.SharedIndexInformer, err = f.informer(h.of(at.config()), ns, s); err != nil {
				t.Fatal(err)
			}
			if _, err := h.AddEventHandler(h.observer); err != nil {
				t.Fatal(err)
			}
			wg.Go(func() { h.RunWithContext(ctx) })
			p.at[at] = h
		}
		g.pairs = append(g.pairs, p)
	}
	for _, p := range g.pairs {
		for at, h := range p.at {
			eventually(t, fmt.Sprint(g.name, " ", p, " ", at, " in sync"), func() string {
				if !h.HasSynced() {
					return "not in sync"
				}
				return ""
			})
		}
	}
	return g
}

// TestInformers runs client-go's shared informers of all flavours, with and without
// WatchList, at the API server and through the gateway, and kills the API server
// WATCHKEEPER_KILLS times. Both sides have to hold the same objects. It runs alone:
// every change in the cluster costs an event to more than a hundred informers.
func TestInformers(t *testing.T) {
	clustertest.SkipShort(t)
	ns := namespace(t, "informers")
	changing := startChurn(t, ns)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	changing.wait(t, 10) // so that there are objects to list
	var groups []*group
	for _, watchList := range []bool{true, false} {
		for _, f := range []flavour{typed, dynamicJSON, dynamicCBOR, metaOnly} {
			groups = append(groups, startGroup(ctx, t, &wg, ns, f, watchList))
		}
	}
	for range kills(t) {
		changing.wait(t, 10)
		restartUpstream(t)
	}
	changing.wait(t, 10)
	changing.stop()
	client, err := dynamic.NewForConfig(direct.config())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) { g.judge(t, client, ns) })
	}
	t.Logf("%d changes", changing.total())
}

// judge waits for the end state of a group's informers, and checks the events that led
// to it.
func (g *group) judge(t *testing.T, client dynamic.Interface, ns string) {
	events, lists, watches := map[side]int{}, map[side]int64{}, map[side]int64{}
	for _, p := range g.pairs {
		p.settle(t, client, ns)
		for at, h := range p.at {
			n, wrong := h.result()
			if len(wrong) > 0 {
				t.Errorf("%s, %s: %d of %d events are impossible: %s", p, at, len(wrong), n, strings.Join(wrong[:min(len(wrong), 5)], "; "))
			}
			events[at] += n
			lists[at] += h.lists.Load()
			watches[at] += h.watches.Load()
		}
		// The gateway's watches outlive the API server, so there is no relist.
		if n := p.at[gateway].lists.Load(); n != 1 {
			t.Errorf("%s: %d lists through the gateway, %d directly", p, n, p.at[direct].lists.Load())
		}
	}
	for _, at := range sides {
		t.Logf("%-22s %-8s %2d informers: %4d events, %2d lists, %2d watches", g.name, at, len(g.pairs), events[at], lists[at], watches[at])
	}
}

// settle waits until both informers of a pair hold the objects of a list from the API
// server, and compares them.
func (p *pair) settle(t *testing.T, client dynamic.Interface, ns string) {
	t.Helper()
	if p.everywhere {
		ns = metav1.NamespaceAll
	}
	var opts metav1.ListOptions
	p.apply(&opts)
	eventually(t, "the end state", func() string {
		list, err := client.Resource(p.resource).Namespace(ns).List(t.Context(), opts)
		if err != nil {
			return err.Error()
		}
		want := map[string]string{}
		for _, o := range list.Items {
			want[o.GetNamespace()+"/"+o.GetName()] = string(o.GetUID()) + " " + o.GetResourceVersion()
		}
		for _, at := range sides {
			if d := cmp.Diff(want, p.at[at].versions()); d != "" {
				return string(at) + " (-API server +informer)\n" + d
			}
		}
		return cmp.Diff(p.at[direct].texts(), p.at[gateway].texts())
	})
}

// versions returns the content of the informer's store: key → UID and RV.
func (h *held) versions() map[string]string {
	all := map[string]string{}
	for _, o := range h.GetStore().List() {
		m := o.(metav1.Object)
		all[m.GetNamespace()+"/"+m.GetName()] = string(m.GetUID()) + " " + m.GetResourceVersion()
	}
	return all
}

// texts returns the content of the informer's store: key → the complete object.
func (h *held) texts() map[string]string {
	all := map[string]string{}
	for _, o := range h.GetStore().List() {
		text, err := json.Marshal(o)
		if err != nil {
			text = []byte(err.Error())
		}
		m := o.(metav1.Object)
		all[m.GetNamespace()+"/"+m.GetName()] = string(text)
	}
	return all
}
