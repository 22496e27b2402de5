// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"cmp"
	"slices"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
)

// maxGaps is how many gaps of a resource are listed.
const maxGaps = 100

// index describes the whole history, or what the caller may list of it in a namespace.
func (c *call) index() (any, error) {
	out := api.History{Now: c.now.UTC(), Recording: c.recordingState(), Upstream: c.upstreamState(), Resources: []api.ResourceHistory{}}
	if c.store == nil {
		return out, nil
	}
	usage := c.store.Usage()
	out.Store = api.Store{Bytes: usage.DiskBytes, MaxBytes: usage.MaxBytes, MaxAgeSeconds: int64(usage.MaxAge / time.Second)}
	resources, err := c.resources()
	if err != nil {
		return nil, err
	}
	for _, r := range resources {
		one := api.ResourceHistory{Resource: r.GroupResource(), Path: r.Path(), Epochs: []api.Epoch{}}
		for _, st := range slices.Backward(c.store.Streams(r)) {
			if st.Head().RV == 0 {
				continue // nothing is recorded yet
			}
			one.Epochs = append(one.Epochs, epochOf(st))
		}
		out.Resources = append(out.Resources, one)
	}
	out.Denied = c.denied
	return out, nil
}

func (c *call) recordingState() api.Recording {
	s := c.Recording()
	if s.State == api.RecordingFailed {
		s.Reason = cmp.Or(s.Reason, "it has not begun yet")
	}
	return api.Recording{State: s.State, Reason: s.Reason, Scope: (*api.RecordingScope)(s.Scope)}
}

// outside says what a finished recording may lack of a namespace, "" for all; "" for nothing.
func (c *call) outside(namespace string) string {
	return (*api.RecordingScope)(c.Recording().Scope).Lacks(namespace)
}

func epochOf(st *history.Stream) api.Epoch {
	span := st.Span()
	e := api.Epoch{Epoch: st.Epoch(), Span: api.Span{From: apiMoment(span.From), To: apiMoment(span.To)}, Gaps: []api.Gap{}}
	for _, g := range slices.Backward(st.Gaps()) {
		if len(e.Gaps) == maxGaps {
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
