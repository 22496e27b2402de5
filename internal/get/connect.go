// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	utilcomp "k8s.io/kubectl/pkg/util/completion"
)

// connect chooses the server. The caller calls end when the command is done.
func (c *command) connect(ctx context.Context) (end func(), err error) {
	end = func() {}
	server, err := c.flags.Server()
	if err != nil {
		return end, err
	}
	if server != "" {
		c.flags.Use(server)
	} else {
		server = c.flags.UseLocal(ctx)
	}
	if c.at == "" {
		return end, nil
	}
	if server == "" {
		return end, errors.New("--at needs a gateway, which records the past: name it with --server, or start one for this context with 'watchkeeper serve'")
	}
	moment, err := c.Moment(ctx, c.flags, c.at)
	if err != nil {
		return end, err
	}
	// kubectl's cache is keyed by the server's URL, which differs each time.
	cache, err := os.MkdirTemp("", "watchkeeper-get-")
	if err != nil {
		return end, err
	}
	*c.flags.CacheDir = cache
	c.flags.Use(server + moment)
	return func() { os.RemoveAll(cache) }, nil //nolint:errcheck // a temporary directory
}

// addCompletion completes resources, names and the values of flags, as kubectl does.
func (c *command) addCompletion(cmd *cobra.Command) {
	type complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)
	connected := func(f complete) complete {
		return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			end, err := c.connect(cmd.Context())
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			defer end()
			return f(cmd, args, text)
		}
	}
	of := func(list func(string) []string) complete {
		return func(_ *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
			return list(text), cobra.ShellCompDirectiveNoFileComp
		}
	}
	utilcomp.SetFactoryForCompletion(c.factory)
	cmd.ValidArgsFunction = connected(utilcomp.ResourceTypeAndNameCompletionFunc(c.factory))
	for flag, f := range map[string]complete{
		"namespace": connected(of(func(text string) []string { return utilcomp.CompGetResource(c.factory, "namespace", text) })),
		"context":   of(utilcomp.ListContextsInConfig),
		"cluster":   of(utilcomp.ListClustersInConfig),
		"user":      of(utilcomp.ListUsersInConfig),
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
			panic(err) // the flag does not exist
		}
	}
}
