// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command stock is the controller with controller-runtime's own cache.
package main

import (
	"log"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/watchkeeper/watchkeeper/clients/widget"
)

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	// ctrl.GetConfig would disable the rate limits.
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) // without it, the Pod's
	if err == nil {
		err = widget.Run(ctrl.SetupSignalHandler(), config, ctrl.Options{})
	}
	if err != nil {
		log.Fatal(err)
	}
}
