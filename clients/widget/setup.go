// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// workers is how many calls run at a time, as many as in examples/widget.
const workers = 4

// Run runs the controller until ctx ends.
func Run(ctx context.Context, config *rest.Config, opts ctrl.Options) error {
	if err := AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	opts.Metrics.BindAddress = "0" // none
	mgr, err := ctrl.NewManager(config, opts)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
