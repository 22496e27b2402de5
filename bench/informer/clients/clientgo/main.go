// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command clientgo is a client of bench/informer: client-go's informers, in the modes
// in which programs use them.
package main

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/bench/informer/measure"
)

func main() {
	// Streaming lists are client-go's default since v0.35.
	list := []string{"KUBE_FEATURE_WatchListClient=false"}
	measure.Main(
		mode("typed-json-list", "JSON", typed(runtime.ContentTypeJSON), measure.Mode{Env: list}),
		mode("typed-json-watchlist", "JSON", typed(runtime.ContentTypeJSON), measure.Mode{}),
		mode("dynamic-list", "JSON", unstructured, measure.Mode{Env: list}),
		mode("dynamic-watchlist", "JSON", unstructured, measure.Mode{Default: true}),
		mode("typed-protobuf-list", "protobuf", typed(""), measure.Mode{Env: list}),
		mode("typed-protobuf-watchlist", "protobuf", typed(""), measure.Mode{Default: true}),
		mode("metadata-protobuf-watchlist", "protobuf", partial, measure.Mode{Partial: true}),
	)
}

func mode(name, encoding string, newInformer func(*rest.Config) (cache.SharedIndexInformer, error), m measure.Mode) measure.Mode {
	m.Name, m.Library, m.Encoding = name, "client-go", encoding
	m.New = func() measure.Client { return &client{newInformer: newInformer} }
	return m
}

// typed returns informers of generated types. The content type "" is the client's
// default, protobuf.
func typed(contentType string) func(*rest.Config) (cache.SharedIndexInformer, error) {
	return func(config *rest.Config) (cache.SharedIndexInformer, error) {
		config.ContentType = contentType
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return informers.NewSharedInformerFactory(c, 0).Core().V1().Pods().Informer(), nil
	}
}

func unstructured(config *rest.Config) (cache.SharedIndexInformer, error) {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return dynamicinformer.NewDynamicSharedInformerFactory(c, 0).ForResource(corev1.SchemeGroupVersion.WithResource("pods")).Informer(), nil
}

func partial(config *rest.Config) (cache.SharedIndexInformer, error) {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return metadatainformer.NewSharedInformerFactory(c, 0).ForResource(corev1.SchemeGroupVersion.WithResource("pods")).Informer(), nil
}

// client is one informer.
type client struct {
	newInformer func(*rest.Config) (cache.SharedIndexInformer, error)
	informer    cache.SharedIndexInformer
	handler     cache.ResourceEventHandlerRegistration
	handled     atomic.Int64
}

func (c *client) Start(ctx context.Context, target measure.Target) (err error) {
	c.informer, err = c.newInformer(&rest.Config{Host: target.URL, TLSClientConfig: rest.TLSClientConfig{CAData: target.CA}})
	if err != nil {
		return err
	}
	c.handler, err = c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.handled.Add(1) },
		UpdateFunc: func(any, any) { c.handled.Add(1) },
		DeleteFunc: func(any) { c.handled.Add(1) },
	})
	if err != nil {
		return err
	}
	go c.informer.RunWithContext(ctx)
	return nil
}

func (c *client) Synced() bool   { return c.handler.HasSynced() }
func (c *client) Handled() int64 { return c.handled.Load() }
func (c *client) Len() int       { return len(c.informer.GetStore().ListKeys()) }

func (c *client) ResourceVersion(namespace, name string) string {
	o, exists, err := c.informer.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return ""
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
