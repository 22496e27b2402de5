// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

// A Collection is what is listed and watched.
type Collection struct {
	Base      *url.URL // of the API server, or gateway; it may have a path
	Transport http.RoundTripper
	Resource  kube.Resource
	Namespace string // "" for all, and for resources without namespaces

	LabelSelector, FieldSelector string
}

// URL returns the URL of the collection, below a prefix such as /at/5m, which may be "".
func (c Collection) URL(prefix string) *url.URL {
	path := []string{prefix, "apis", c.Resource.Group, c.Resource.Version}
	if c.Resource.Group == "" {
		path = []string{prefix, "api", c.Resource.Version}
	}
	if c.Namespace != "" {
		path = append(path, "namespaces", c.Namespace)
	}
	u := c.Base.JoinPath(append(path, c.Resource.Name)...)
	query := u.Query()
	if c.LabelSelector != "" {
		query.Set("labelSelector", c.LabelSelector)
	}
	if c.FieldSelector != "" {
		query.Set("fieldSelector", c.FieldSelector)
	}
	u.RawQuery = query.Encode()
	return u
}

// A State says how well a table agrees with the API server.
type State struct {
	Phase Phase
	// Since is when a table became stale.
	Since time.Time
	// Reason is why, in one line.
	Reason string
}

// A Phase is that of a [State].
type Phase int

// The phases.
const (
	Connecting Phase = iota // there is no list yet; Reason is set after a failure
	Live
	Stale
	Refused // the API server does not let the resource be read; that is final
)

// Run lists and watches until ctx ends, and reports each change of the state. It returns an
// error if the API server refuses the collection.
func (f *Feed) Run(ctx context.Context, c Collection, report func(State)) error {
	state := State{}
	set := func(s State) {
		if s != state {
			state = s
			report(s)
		}
	}
	r := reflector.New(reflector.Objects(true), f, reflector.Options{
		Transport: c.Transport, URL: c.URL(""), Watchdog: true,
		Failed: func(_ string, err error) {
			switch reason := table.Clean(err.Error()); {
			case f.head == 0:
				set(State{Reason: reason})
			case state.Phase == Live:
				set(State{Stale, time.Now(), reason})
			default:
				set(State{Stale, state.Since, reason})
			}
		},
		Continuity: func(c reflector.Continuity) {
			if c == reflector.Watched {
				set(State{Phase: Live})
			}
		},
	})
	err := r.Run(ctx)
	if refused, ok := errors.AsType[*reflector.RefusedError](err); ok {
		set(State{Phase: Refused, Since: time.Now(), Reason: table.Clean(refused.Message)})
	}
	return err
}
