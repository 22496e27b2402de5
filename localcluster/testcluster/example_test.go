// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package testcluster_test

import (
	"context"
	"fmt"
	"log"

	"github.com/watchkeeper/watchkeeper/localcluster/testcluster"
)

// In TestMain, m.Run is in the place of kubectl here.
func ExampleStartContext() {
	ctx := context.Background()
	cluster, err := testcluster.StartContext(ctx, testcluster.Options{Nodes: 1})
	if err != nil {
		log.Fatal(err)
	}
	out, err := cluster.Command(ctx, "kubectl", "get", "nodes", "-o", "name").CombinedOutput()
	fmt.Printf("%s%v\n", out, err)
	if err := cluster.Stop(); err != nil {
		log.Print(err)
	}
	// Output:
	// node/node-0
	// <nil>
}
