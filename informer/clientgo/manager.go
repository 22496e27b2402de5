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
	"github.com/watchkeeper/watchkeeper/informer/clientgo/kubeconfig"
)

// A NewInformerFunc is the type of cache.Options.NewInformer in
// controller-runtime.
type NewInformerFunc = func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// ForManager makes a manager of controller-runtime use informers of this package.
// It returns a configuration to create the manager with, instead of config, and
// a constructor for the manager's cache.
//
//	config, newInformer, err := clientgo.ForManager(ctrl.GetConfigOrDie(), informer.Options{})
//	mgr, err := ctrl.NewManager(config, ctrl.Options{Cache: cache.Options{NewInformer: newInformer}})
//
// It works with controller-runtime 0.21 and newer.
//
// controller-runtime passes to the constructor a lister-watcher that does not say
// what it lists. The constructor makes it list, and the returned configuration
// intercepts the request instead of sending it: the URL has resource, namespace
// and selectors, and the Accept header shows whether objects of the type come in
// protobuf. If the manager has an HTTPClient, create that from the returned
// configuration too.
//
// opts apply to all informers. One Compression of package zstd would take its dictionary
// from the first of them. Namespaces and selectors are options of the
// manager's cache; setting them here is an error. If the request of a
// lister-watcher cannot be intercepted, or asks for something that an informer
// cannot do, SetTransform and the other setters of that informer return the
// error, and so does the manager's cache. EnableWatchBookmarks of the manager has
// no effect: informers always request bookmarks.
func ForManager(config *rest.Config, opts informer.Options) (*rest.Config, NewInformerFunc, error) {
	if config == nil {
		return nil, nil, errors.New("manager configuration: config is nil")
	}
	if len(opts.Namespaces) > 0 || opts.LabelSelector != "" || opts.FieldSelector != "" {
		return nil, nil, errors.New("set namespaces and selectors in the options of the manager's cache")
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("manager configuration: %w", err)
	}
	m := manager{base: base, opts: opts}
	if m.src, err = kubeconfig.FromConfig(config); err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return interceptor{next} })
	return config, m.newInformer, nil
}

type manager struct {
	base *url.URL
	src  *informer.Source
	opts informer.Options
}

func (m manager) newInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	opts := m.opts
	request, err := interceptList(lw)
	var res informer.Resource
	if err == nil {
		res, err = m.parse(request, &opts)
	}
	if err != nil {
		request, err = &http.Request{}, fmt.Errorf("informer of %T: %w", example, err)
		res = informer.Resource{Version: "v1", Name: "unknown"} // never listed: Run returns err
	}
	_, opts.MetadataOnly = example.(*metav1.PartialObjectMetadata)
	protobuf := !opts.JSON && strings.Contains(request.Header.Get("Accept"), runtime.ContentTypeProtobuf)
	codec := &transformCodec[runtime.Object]{Codec: codecOf(example, protobuf), name: fmt.Sprintf("%s (%T)", res.Name, example)}
	a := wrap(informer.New(m.src, res, codec, opts), codec, resync, indexers)
	a.configErr = err
	return a
}

// parse returns the resource of a list request and sets its namespace and
// selectors in opts.
func (m manager) parse(r *http.Request, opts *informer.Options) (res informer.Resource, err error) {
	path, ok := strings.CutPrefix(r.URL.Path, strings.TrimSuffix(m.base.Path, "/")+"/")
	parts := strings.Split(path, "/")
	switch {
	case ok && parts[0] == "api" && len(parts) > 2:
		parts = slices.Insert(parts[1:], 0, "")
	case ok && parts[0] == "apis" && len(parts) > 3:
		parts = parts[1:]
	default:
		return res, fmt.Errorf("%s is not a collection below %s", r.URL.Redacted(), m.base.Redacted())
	}
	if len(parts) == 5 && parts[2] == "namespaces" {
		opts.Namespaces = []string{parts[3]}
		parts = slices.Delete(parts, 2, 4)
	}
	if len(parts) != 3 {
		return res, fmt.Errorf("%s is not a collection", r.URL.Redacted())
	}
	for key, values := range r.URL.Query() {
		switch key {
		case "labelSelector":
			opts.LabelSelector = values[0]
		case "fieldSelector":
			opts.FieldSelector = values[0]
		case "limit": // set by interceptList
		default:
			return res, fmt.Errorf("%s has the parameter %s, which informers do not support", r.URL.Redacted(), key)
		}
	}
	return informer.Resource{Group: parts[0], Version: parts[1], Name: parts[2]}, nil
}

// An intercepted is a context value. The interceptor stores a request that has
// one instead of sending it.
type intercepted struct{ request *http.Request }

type interceptedKey struct{}

var errIntercepted = errors.New("request intercepted")

// interceptList returns the request that lw sends to list.
func interceptList(lw cache.ListerWatcher) (*http.Request, error) {
	if l, ok := lw.(*cache.ListWatch); ok && l.ListWithContextFunc == nil {
		// The request would have another context, which may be nil.
		return nil, errors.New("list function without a context: controller-runtime 0.21 or newer is required")
	}
	i := &intercepted{}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), interceptedKey{}, i), 10*time.Second)
	defer cancel()
	_, err := cache.ToListerWatcherWithContext(lw).ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if i.request != nil {
		return i.request, nil
	}
	if err == nil {
		err = errors.New("the list request was sent")
	}
	return nil, fmt.Errorf("client not created from the configuration that ForManager returned: %w", err)
}

// An interceptor is a transport that stores intercepted requests.
type interceptor struct{ http.RoundTripper }

func (t interceptor) RoundTrip(r *http.Request) (*http.Response, error) {
	if i, ok := r.Context().Value(interceptedKey{}).(*intercepted); ok {
		i.request = r
		return nil, errIntercepted
	}
	return t.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper gives client-go access to the transport below.
func (t interceptor) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }
