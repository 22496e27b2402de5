// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command widget is an example of a controller: it keeps one ConfigMap per Widget, a
// custom resource. It reads from informers and writes by client-go.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/kubeconfig"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
	"github.com/watchkeeper/watchkeeper/informer/reconcile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) // without it, the Pod's
	if err == nil {
		err = run(ctx, config, informer.Options{})
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run runs the controller until ctx ends.
func run(ctx context.Context, config *rest.Config, opts informer.Options) error {
	src, err := kubeconfig.FromConfig(config)
	if err != nil {
		return err
	}
	r := &reconciler{
		widgets:    informer.New(src, informer.Resource{Group: kind.Group, Version: kind.Version, Name: "widgets"}, informer.JSON[*Widget](), opts),
		configMaps: typed.New[*corev1.ConfigMap](src, opts),
		dynamic:    dynamic.NewForConfigOrDie(config).Resource(kind.GroupVersion().WithResource("widgets")),
		typed:      kubernetes.NewForConfigOrDie(config).CoreV1(),
	}
	c := reconcile.New("widget", r.reconcile, reconcile.Options{Logger: slog.Default()},
		reconcile.For(r.widgets),
		reconcile.Owns(r.configMaps, reconcile.Kind{Group: kind.Group, Kind: kind.Kind}))
	group := reconcile.Group{Controllers: []*reconcile.Controller{c}, Logger: slog.Default()}
	return group.Run(ctx)
}
