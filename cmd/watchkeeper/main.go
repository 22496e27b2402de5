// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Command watchkeeper serves the Kubernetes API of a cluster from one watch
// per resource. See internal/cli for the commands.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // for CronJobs: the image has no zones

	"github.com/watchkeeper/watchkeeper/internal/cli"
	_ "github.com/watchkeeper/watchkeeper/internal/cli/untranslated"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}
