// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/watchkeeper/watchkeeper/internal/access"
	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/historyapi"
	"github.com/watchkeeper/watchkeeper/internal/past"
)

// ReadHistory makes the history API read another record.
func (g *Gateway) ReadHistory(record past.Record) {
	h := g.reads
	p := past.New(record, h.background, h.log)
	g.extensions.history = historyapi.New(historyapi.Handler{
		Past: p, Access: access.NewPast(h.up, p, h.background), Upstream: h.up, Filter: g.filter.checkAPI,
		Recording: func() historyapi.RecordingState { return historyapi.RecordingState{State: api.RecordingOn} },
	})
}
