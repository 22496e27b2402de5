// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/kubeconfig"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
)

// A program in a Pod that logs each Pod that is added to a namespace or deleted
// from it. docs/informer.md has the Role that it needs.
func ExampleInCluster() {
	src, err := kubeconfig.InCluster()
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pods := typed.New[*corev1.Pod](src, informer.Options{Namespaces: []string{"default"}})
	pods.Handle(informer.Handler[*corev1.Pod]{
		Add:    func(now informer.Ref[*corev1.Pod]) { log.Print("added ", now.Key()) },
		Delete: func(last informer.Ref[*corev1.Pod]) { log.Print("deleted ", last.Key()) },
		Error:  func(err error) { log.Print(err) },
	})
	if err := pods.Run(ctx); err != nil {
		log.Fatal(err) // without the Role: refused with 403: …
	}
}
