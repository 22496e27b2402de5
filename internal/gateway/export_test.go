// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

// ReadHistory has the history API read another history.
func (g *Gateway) ReadHistory(source archive) { g.extensions.history.source = source }
