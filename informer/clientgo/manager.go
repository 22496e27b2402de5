// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/kubeconfig"
)

// A NewInformerFunc is the constructor that cache.Options.NewInformer of
// controller-runtime takes.
type NewInformerFunc = func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// ForManager returns what has a manager of controller-runtime use informers of
// this library: a configuration to make it with, in place of config, and a
// constructor for its cache.
//
//	config, newInformer, err := clientgo.ForManager(ctrl.GetConfigOrDie(), informer.Options{})
//	mgr, err := ctrl.NewManager(config, ctrl.Options{Cache: cache.Options{NewInformer: newInformer}})
//
// The constructor is given a lister-watcher that knows what to list, and does
// not tell. So it is asked for a list, and the request is read, and withheld, on
// its way through the configuration that was returned: its URL has resource,
// namespace and selectors, and its Accept header tells whether objects of the
// type come in protobuf. A manager with an HTTPClient of its own needs one that
// was made of that configuration, too.
//
// opts apply to all informers; its namespaces and selectors are the manager's
// business, and an error here. If a lister-watcher's request cannot be read, or
// asks for what an informer does not do, then SetTransform and the other setters
// of the informer return that error, and with them the manager's cache. The
// manager's EnableWatchBookmarks does not matter: there are bookmarks.
func ForManager(config *rest.Config, opts informer.Options) (*rest.Config, NewInformerFunc, error) {
	if len(opts.Namespaces) > 0 || opts.LabelSelector != "" || opts.FieldSelector != "" {
		return nil, nil, errors.New("namespaces and selectors are options of the manager's cache")
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("the manager's configuration: %w", err)
	}
	m := manager{base: base, opts: opts}
	if m.objects, err = kubeconfig.FromConfig(config); err != nil {
		return nil, nil, err
	}
	metadata := rest.CopyConfig(config)
	metadata.Wrap(func(next http.RoundTripper) http.RoundTripper { return metadataOnly{next} })
	if m.metadata, err = kubeconfig.FromConfig(metadata); err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return probed{next} })
	return config, m.newInformer, nil
}

type manager struct {
	base              *url.URL
	objects, metadata *informer.Source
	opts              informer.Options
}

func (m manager) newInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	opts := m.opts
	request, err := ask(lw)
	var res informer.Resource
	if err == nil {
		res, err = m.read(request, &opts)
	}
	if err != nil {
		request, err = &http.Request{}, fmt.Errorf("informer of %T: %w", example, err)
	}
	src := m.objects
	if _, ok := example.(*metav1.PartialObjectMetadata); ok {
		src = m.metadata
	}
	protobuf := strings.Contains(request.Header.Get("Accept"), runtime.ContentTypeProtobuf)
	a := New(src, res, codecLike(example, protobuf), opts, resync, indexers)
	a.codec.name = fmt.Sprintf("%s (%T)", res.Name, example)
	a.broken = err
	return a
}

// read makes a resource of a request's URL, and options of its query.
func (m manager) read(r *http.Request, opts *informer.Options) (res informer.Resource, err error) {
	path, ok := strings.CutPrefix(r.URL.Path, strings.TrimSuffix(m.base.Path, "/")+"/")
	parts := strings.Split(path, "/")
	switch {
	case ok && parts[0] == "api" && len(parts) > 2:
		parts = slices.Insert(parts[1:], 0, "")
	case ok && parts[0] == "apis" && len(parts) > 3:
		parts = parts[1:]
	default:
		return res, fmt.Errorf("%s is not a collection below %s", r.URL, m.base)
	}
	if len(parts) == 5 && parts[2] == "namespaces" {
		opts.Namespaces = []string{parts[3]}
		parts = slices.Delete(parts, 2, 4)
	}
	if len(parts) != 3 {
		return res, fmt.Errorf("%s is not a collection", r.URL)
	}
	for key, values := range r.URL.Query() {
		switch key {
		case "labelSelector":
			opts.LabelSelector = values[0]
		case "fieldSelector":
			opts.FieldSelector = values[0]
		case "limit": // is ours
		default:
			return res, fmt.Errorf("%s asks for %s, which an informer cannot", r.URL, key)
		}
	}
	return informer.Resource{Group: parts[0], Version: parts[1], Name: parts[2]}, nil
}

// A probe is a context value: a request with it is not sent, but noted.
type probe struct{ request *http.Request }

type probeKey struct{}

var errProbed = errors.New("the request was to be read only")

// ask returns the request with which lw lists.
func ask(lw cache.ListerWatcher) (*http.Request, error) {
	p := &probe{}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), probeKey{}, p), 10*time.Second)
	defer cancel()
	_, err := cache.ToListerWatcherWithContext(lw).ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if p.request != nil {
		return p.request, nil
	}
	if err == nil {
		err = errors.New("it lists")
	}
	return nil, fmt.Errorf("its client is not of the configuration that ForManager returned: %w", err)
}

// probed notes probes.
type probed struct{ http.RoundTripper }

func (t probed) RoundTrip(r *http.Request) (*http.Response, error) {
	if p, ok := r.Context().Value(probeKey{}).(*probe); ok {
		p.request = r
		return nil, errProbed
	}
	return t.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find what is below.
func (t probed) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// metadataOnly asks for objects' metadata in place of objects.
type metadataOnly struct{ http.RoundTripper }

func (t metadataOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	as := "PartialObjectMetadataList"
	if r.URL.Query().Has("watch") {
		as = "PartialObjectMetadata"
	}
	accept := r.Header.Get("Accept")
	r = r.Clone(r.Context())
	r.Header.Set("Accept", accept+";as="+as+";g=meta.k8s.io;v=v1")
	return t.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find what is below.
func (t metadataOnly) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }
