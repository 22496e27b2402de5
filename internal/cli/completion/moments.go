// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// maxMoments is how many of the latest changes are offered as moments.
const maxMoments = "30"

var ages = []string{"1m", "5m", "10m", "30m", "1h", "6h", "1d"}

// firstMoment completes the first argument, a moment.
func (c *completer) firstMoment(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.moments(cmd, nil, word)
}

// moments completes a moment: a few ages, and the times of the latest changes in the namespace,
// of the resource if there is one, with what has changed.
func (c *completer) moments(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	words := slices.Clone(ages)
	seen := map[string]bool{}
	for _, change := range c.changes(cmd.Context(), args) {
		// The state at the time of a change has it.
		t := change.Time.Truncate(time.Second).Add(time.Second)
		at := t.UTC().Format(time.RFC3339)
		if seen[at] || t.After(time.Now()) {
			continue
		}
		seen[at] = true
		what := change.Name + ": " + strings.Join(change.Summary, "; ")
		words = append(words, cobra.CompletionWithDesc(at, what))
	}
	return starting(words, word), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// changes returns the latest changes, the newest first.
func (c *completer) changes(ctx context.Context, args []string) []api.ObjectChange {
	query := url.Values{"limit": {maxMoments}}
	if namespace, _, err := c.factory.ToRawKubeConfigLoader().Namespace(); err == nil {
		query.Set("namespace", namespace)
	}
	mapping, name := c.named(args)
	if name != "" {
		query.Set("filter", name)
	}
	if mapping != nil {
		query.Set("resource", mapping.Resource.GroupResource().String())
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			query.Del("namespace")
		}
	}
	server, err := c.server.Connect(ctx)
	if err != nil {
		return nil
	}
	client, err := c.server.HTTPClient()
	if err != nil {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/watchkeeper/v1/history/changes?"+query.Encode(), nil)
	if err != nil {
		return nil
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var changes api.Changes
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&changes) != nil {
		return nil
	}
	return changes.Items
}
