// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// learnEvery is how often it is looked whether there is something recorded of
// which it is not known yet whether the gateway may list it.
const learnEvery = 10 * time.Second

// A disclosure decides to whom the past of a resource is told (T8). What is
// recorded tells nothing of that: it may be of another year, and have been asked
// for with other credentials. So nothing is told before the API server has said
// something, once: from then on its last word stands, as it does for the cache.
type disclosure struct {
	up    *Upstream
	begin beginFunc

	mu    sync.Mutex // guards known
	known map[kube.Resource]*access
}

// of returns what is known of a resource; there are as many as are recorded.
func (d *disclosure) of(id kube.Resource) *access {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[kube.Resource]*access{}
	}
	a := d.known[id]
	if a == nil {
		a = newAccess(d.up, id, d.begin)
		a.strict = true
		d.known[id] = a
	}
	return a
}

// refusal returns why the past of a target is not told to who asks, nil if it is:
// a caller with credentials of their own may read it now, or else the gateway may
// do what the verb says in all namespaces.
func (d *disclosure) refusal(r *http.Request, source archive, t target, verb readVerb) *metav1.Status {
	a, name := d.of(t.resource), t.resource.GroupResource()
	if source.Withholds(t.resource) {
		return forbidden(fmt.Sprintf("%s were recorded before, and are not shown while watchkeeper runs without --record-secrets", name))
	}
	who, where, v := "the gateway", " in all namespaces", saysNothing
	if caller := identity(r.Header); caller != nil {
		who, where, verb = "who asks", "", t.verb
		v = a.caller(r.Context(), t, caller)
	} else {
		v = a.tells(r.Context(), verb)
	}
	switch v {
	case saysYes:
		return nil
	case saysNo:
		return forbidden(fmt.Sprintf("%s may not %s %s%s now, and so their past is not told", who, verb, name, where))
	}
	return unavailable(fmt.Sprintf("it is not known whether %s may %s %s%s now: the API server does not say", who, verb, name, where), true)
}

// tells is own for the past. Who may list everything may read each of it: that
// counts for what the API server has not been asked about before it was away.
func (a *access) tells(ctx context.Context, verb readVerb) verdict {
	v, err := a.own(ctx, verb)
	if err == nil && v == saysNothing && verb != verbList {
		v, _ = a.own(ctx, verbList)
	}
	return v
}

// learn asks, until ctx ends, whether the gateway may list what is recorded: once
// for each resource, so that its past can be told when the API server is away.
func (p *past) learn(ctx context.Context) {
	for ctx.Err() == nil {
		if store := p.store(); store != nil {
			for _, id := range store.Resources() {
				a := p.cache.disclosure.of(id)
				if d, _ := a.last(verbList); d.verdict == saysNothing {
					_, _ = a.own(ctx, verbList)
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(learnEvery):
		}
	}
}
