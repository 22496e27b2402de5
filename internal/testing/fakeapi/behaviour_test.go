// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"testing"
	"testing/synctest"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/behaviour"
)

// TestBehaviour runs the tests in virtual time. TestFakeAPI of package acceptance runs
// them against a real API server.
func TestBehaviour(t *testing.T) {
	behaviour.Each(func(name string, test func(*testing.T, behaviour.API)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := fakeapi.New(fakeapi.Options{Resources: []fakeapi.Resource{fakeapi.ConfigMaps, fakeapi.Pods}})
				network := fakeapi.NewNetwork(api)
				defer network.Close()
				test(t, behaviour.API{Client: network.Client(), URL: "http://api", Namespace: "default"})
			})
		})
	})
}
