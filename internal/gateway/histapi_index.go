// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/history"
)

// mostGaps is how many gaps of a resource are told.
const mostGaps = 100

// index answers what is recorded.
func (c *historyCall) index() (any, error) {
	out := api.History{Recording: c.recording(), Resources: []api.ResourceHistory{}}
	if c.store == nil {
		return out, nil
	}
	usage := c.store.Usage()
	out.Store = api.Store{Bytes: usage.Bytes, MaxBytes: usage.MaxBytes, MaxAgeSeconds: int64(usage.MaxAge / time.Second)}
	resources, err := c.resources()
	if err != nil {
		return nil, err
	}
	for _, r := range resources {
		one := api.ResourceHistory{Resource: r.GroupResource(), Path: r.Path(), Epochs: []api.Epoch{}}
		for _, st := range slices.Backward(c.store.Streams(r)) {
			if st.Head().RV == 0 {
				continue // nothing came yet
			}
			one.Epochs = append(one.Epochs, epochOf(st))
		}
		out.Resources = append(out.Resources, one)
	}
	return out, nil
}

func (c *historyCall) recording() api.Recording {
	if _, still := c.source.(stillArchive); still {
		return api.Recording{State: api.RecordingEnded}
	}
	switch status, ok := c.source.Status(); {
	case !ok:
		return api.Recording{State: api.RecordingOff, Reason: "watchkeeper serve has no --data-dir"}
	case !status.Recording:
		return api.Recording{State: api.RecordingFailed, Reason: cmp.Or(status.Problem, "it has not begun yet")}
	}
	return api.Recording{State: api.RecordingOn}
}

func epochOf(st *history.Stream) api.Epoch {
	span := st.Span()
	e := api.Epoch{Epoch: st.Epoch(), Span: api.Span{From: apiMoment(span.From), To: apiMoment(span.To)}, Gaps: []api.Gap{}}
	for _, g := range slices.Backward(st.Gaps()) {
		if len(e.Gaps) == mostGaps {
			e.MoreGaps++
			continue
		}
		e.Gaps = append(e.Gaps, api.Gap{
			From: api.Moment{ResourceVersion: kube.FormatRV(g.From), Time: g.Since.UTC()},
			To:   api.Moment{ResourceVersion: kube.FormatRV(g.To), Time: g.Until.UTC()},
		})
	}
	return e
}
