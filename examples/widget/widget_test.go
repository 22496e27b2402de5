// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/examples/widget/scenarios"
	"github.com/watchkeeper/watchkeeper/informer"
)

func TestController(t *testing.T) {
	scenarios.Test(t, 0, func(ctx context.Context, config *rest.Config) error {
		return run(ctx, config, informer.Options{JSON: true, DetectMutation: true})
	})
}
