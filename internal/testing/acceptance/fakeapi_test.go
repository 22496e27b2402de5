// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/behaviour"
)

// TestFakeAPI runs the tests of the simulated API server against the real one.
func TestFakeAPI(t *testing.T) {
	client, url := direct(t)
	behaviour.Each(func(name string, test func(*testing.T, behaviour.API)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, behaviour.API{Client: client, URL: url, Namespace: "default"})
		})
	})
}
