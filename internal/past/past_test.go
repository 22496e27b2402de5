// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"net/http"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
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
