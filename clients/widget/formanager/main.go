// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command formanager is the controller with informers of package informer in the
// manager's cache.
package main

import (
	"log"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/watchkeeper/watchkeeper/clients/widget"
	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo"
)

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	// ctrl.GetConfig would disable the rate limits.
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) // without it, the Pod's
	if err != nil {
		log.Fatal(err)
	}
	config, newInformer, err := clientgo.ForManager(config, informer.Options{})
	if err == nil {
		err = widget.Run(ctrl.SetupSignalHandler(), config, ctrl.Options{Cache: cache.Options{NewInformer: newInformer}})
	}
	if err != nil {
		log.Fatal(err)
	}
}
