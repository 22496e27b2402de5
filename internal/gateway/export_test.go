// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import "slices"

// ReadHistory has the history API read another history.
func (g *Gateway) ReadHistory(source historySource) { g.extensions.history.source = source }

// HistoryParameters returns the parameters of what the history API has, by its
// path.
func HistoryParameters() map[string][]string {
	all := map[string][]string{}
	for name, e := range historyEndpoints {
		all[name] = slices.Clone(e.parameters)
	}
	return all
}
