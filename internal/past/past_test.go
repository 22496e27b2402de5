// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history"
	"github.com/watchkeeper/watchkeeper/internal/past/pasttest"
)

// TestNotRecorded: the Status says how to record a resource, or that the history is not
// open yet.
func TestNotRecorded(t *testing.T) {
	story, _ := pasttest.NewStory(t)
	for _, test := range []struct {
		past *Past
		id   kube.Resource
		code int32
		want string
	}{
		{nil, pasttest.Nodes, http.StatusNotFound, "--data-dir"},
		{newPast(t, &pasttest.Record{}), pasttest.Nodes, http.StatusServiceUnavailable, "not open"},
		{newPast(t, story), pasttest.Deployments, http.StatusNotFound, "--record=core,deployments.apps"},
		{newPast(t, story), pasttest.Secrets, http.StatusNotFound, "--record-secrets"},
		{newPast(t, story), kube.Resource{Group: "example.com", Version: "v1", Name: "secrets"}, http.StatusNotFound, "--record-secrets"},
		{newPast(t, story), kube.Resource{Version: "v2", Name: "pods"}, http.StatusNotFound, "not recorded as v2, but as v1"},
	} {
		if s := test.past.NotRecorded(test.id); s.Code != test.code || !strings.Contains(s.Message, test.want) {
			t.Errorf("%v: %d %s", test.id, s.Code, s.Message)
		}
	}
}

// TestOtherStore: an RV that a resource has not reached is not looked up among those of
// other resources, which may be of another store (--etcd-servers-overrides, an
// aggregated API server): the upstream is asked.
func TestOtherStore(t *testing.T) {
	story, _ := pasttest.NewStory(t) // of Pods, up to 100
	nodes, err := story.History.NewEpoch(pasttest.Nodes)
	if err == nil {
		err = nodes.Begin(history.Form{ListKind: "NodeList", Item: pasttest.Pod("", "n", 5)}, func(func(*scan.Object) bool) {}, 500, pasttest.TimeOf(50))
	}
	if err != nil {
		t.Fatal(err)
	}
	p := newPast(t, story)
	at := kube.Moment{RV: 300}
	if m, err := p.Locate(t.Context(), pasttest.Pods, at); !errors.Is(err, history.ErrFuture) {
		t.Errorf("without an upstream: %d, %v", m.RV, err)
	}
	p.CatchUp = func(context.Context, kube.Resource) error { return nil }
	if m, err := p.Locate(t.Context(), pasttest.Pods, at); !errors.Is(err, history.ErrFuture) {
		t.Errorf("not reached upstream: %d, %v", m.RV, err)
	}
	p.CatchUp = func(context.Context, kube.Resource) error { return story.Stream.Append(nil, 310, pasttest.TimeOf(310)) }
	if m, err := p.Locate(t.Context(), pasttest.Pods, at); err != nil || m.RV != 300 || !m.Newest {
		t.Errorf("reached upstream: %+v, %v", m, err)
	}
}
