// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// An era is a time during which a custom resource has one definition. When it
// is over, the watches that began in it end, as the API server ends them: what
// they may select by, and what their Tables look like, may be otherwise then.
// Their clients go on where they were.
type era struct {
	ctx  context.Context
	over context.CancelFunc
}

func newEra() *era {
	ctx, over := context.WithCancel(context.Background())
	return &era{ctx, over}
}

// within returns a context that ends with the era, too.
func (e *era) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// A sink is a resource's timeline, which begins a new era with every list that
// the reflector takes because a definition may have changed.
type sink struct {
	*timeline.Timeline
	res     *resource
	schemas int // such lists
}

// Replace implements informer.Sink.
func (s *sink) Replace(list *kube.List) (continued bool) {
	continued = s.Timeline.Replace(list)
	if n := s.res.reflector.Status().Relists["schema"]; n > s.schemas {
		s.schemas = n
		if continued { // otherwise the watches end with an ERROR, which says more
			s.res.era.Swap(newEra()).over()
		}
	}
	return continued
}
