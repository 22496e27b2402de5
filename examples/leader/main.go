// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command leader is an example of a controller with several replicas, one of which works:
// it records an Event for each Pod with an image whose tag is "latest". The informers run
// in all replicas, so that the next leader has its copy already.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/kubeconfig"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
	"github.com/watchkeeper/watchkeeper/informer/reconcile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) // without it, the Pod's
	if err != nil {
		log.Fatal(err)
	}
	name, err := os.Hostname() // in a Pod, its name
	if err == nil {
		err = run(ctx, config, name, informer.Options{})
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run runs the controller as the replica with a name until ctx ends or the lease is lost.
func run(ctx context.Context, config *rest.Config, replica string, opts informer.Options) error {
	src, err := kubeconfig.FromConfig(config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	w := &warner{
		pods:   typed.New[*corev1.Pod](src, opts),
		events: broadcaster.NewRecorder(scheme.Scheme, "latest-warner"),
	}
	c := reconcile.New("latest-warner", w.reconcile, reconcile.Options{Logger: slog.Default()},
		reconcile.For(w.pods, reconcile.GenerationChanged))

	informersCtx, stopInformers := context.WithCancel(context.WithoutCancel(ctx))
	group := reconcile.Group{Informers: []reconcile.Informer{w.pods}, Logger: slog.Default()}
	ended := make(chan error, 1)
	go func() { ended <- group.Run(informersCtx) }()
	err = lead(ctx, client, replica, c.Run)
	stopInformers() // after the controller
	if groupErr := <-ended; err == nil {
		err = groupErr
	}
	return err
}

// A warner records Events.
type warner struct {
	pods   *informer.Informer[*corev1.Pod]
	events events.EventRecorder
}

func (w *warner) reconcile(_ context.Context, key informer.Key) (result reconcile.Result, err error) {
	ref, exists := w.pods.Get(key)
	if !exists {
		return result, nil
	}
	pod, err := ref.Object()
	if err != nil {
		return result, &reconcile.TerminalError{Err: err}
	}
	for _, c := range pod.Spec.Containers {
		if strings.HasSuffix(c.Image, ":latest") {
			w.events.Eventf(pod, nil, corev1.EventTypeWarning, "LatestImage", "Check", "The container %s has the image %s, which may change", c.Name, c.Image)
		}
	}
	return result, nil
}
