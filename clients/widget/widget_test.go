// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/watchkeeper/watchkeeper/examples/widget/scenarios"
	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo"
)

// setups are the configurations of the programs stock and formanager.
var setups = map[string]func(*rest.Config) (*rest.Config, cache.Options, error){
	"stock": func(config *rest.Config) (*rest.Config, cache.Options, error) { return config, cache.Options{}, nil },
	"formanager": func(config *rest.Config) (*rest.Config, cache.Options, error) {
		config, newInformer, err := clientgo.ForManager(config, informer.Options{})
		return config, cache.Options{NewInformer: newInformer}, err
	},
}

func init() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil // one sleeps until a time that it keeps for all bubbles
}

// TestController runs the scenarios of examples/widget with each setup.
func TestController(t *testing.T) {
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			// controller-runtime's pauses grow up to a quarter of an hour.
			scenarios.Test(t, time.Hour, func(ctx context.Context, config *rest.Config) error {
				config, caches, err := setup(config)
				if err != nil {
					return err
				}
				opts := ctrl.Options{Cache: caches}
				opts.Controller.SkipNameValidation = new(true)
				return Run(ctx, config, opts)
			})
		})
	}
}
