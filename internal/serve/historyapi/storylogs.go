// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package historyapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/story"
)

const (
	// maxLogs bounds the containers of a story whose logs are read, and maxLogBytes and
	// logTimeout the reading of each.
	maxLogs     = 3
	maxLogBytes = 2 << 10
	logTimeout  = 2 * time.Second
	// maxLogAge is how long before now a story may end that has logs: the API server has only
	// those of the last containers.
	maxLogAge = time.Minute
)

// ofContainers are the kinds of episodes that a container's end may explain: not a Node's.
var ofContainers = []string{api.EpisodeFailure, api.EpisodeRollout, api.EpisodeJob}

// addLogs adds to each episode of failed containers the last line of the log of a container that has ended, if
// the API server still has it and the caller may read it. It is what the container said, and
// so a cause.
func (c *call) addLogs(out *api.Story, objects []story.Object) {
	caller := access.CallerOf(c.r.Context())
	if c.Upstream == nil || c.Upstream.Silent() || c.Recording().State == api.RecordingEnded || c.now.Sub(out.To) > maxLogAge || caller != nil && !caller.HasToken() {
		return
	}
	pods := map[string]*corev1.Pod{}
	for _, o := range objects {
		if n := len(o.Versions); o.Resource.GroupResource() == "pods" && n > 0 && o.Versions[n-1].Type != kube.Deleted {
			if pod, err := podOf(o.Versions[n-1].Object, o.Versions[n-1].Time); err == nil {
				pods[string(o.Key)] = pod
			}
		}
	}
	left := maxLogs
	for i := range out.Episodes {
		e := &out.Episodes[i]
		if e.Severity != api.EpisodeFailed || !slices.Contains(ofContainers, e.Kind) || left == 0 {
			continue
		}
		if cause, ok := c.logOf(e, pods); ok {
			e.Causes = append(e.Causes, cause)
			left--
		}
	}
}

// logOf returns what the log of one of an episode's containers says.
func (c *call) logOf(e *api.Episode, pods map[string]*corev1.Pod) (api.Cause, bool) {
	for i := len(e.Entries) - 1; i >= 0; i-- { // the latest first
		entry := &e.Entries[i]
		pod := pods[string(kube.MakeKey(entry.Namespace, entry.Name))]
		if entry.Kind != "Pod" || pod == nil {
			continue
		}
		for _, s := range change.Containers(pod) {
			if change.LastEnd(s) == nil {
				continue
			}
			line, asked := c.lastLine(pod, s)
			if line != "" && !slices.ContainsFunc(e.Causes, func(cause api.Cause) bool { return strings.Contains(cause.Text, line) }) {
				return api.Cause{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, Field: "log of " + s.Name, Text: line}, true
			}
			if asked {
				return api.Cause{}, false // nor are others asked for
			}
		}
	}
	return api.Cause{}, false
}

// lastLine returns the last line that a container that has ended wrote to its log; asked
// reports whether the API server was asked for it.
func (c *call) lastLine(pod *corev1.Pod, s corev1.ContainerStatus) (line string, asked bool) {
	path := "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name + "/log"
	if c.filtered(path) != nil {
		return "", false
	}
	query := url.Values{"container": {s.Name}, "tailLines": {"1"}}
	if s.State.Terminated == nil {
		query.Set("previous", "true")
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), logTimeout)
	defer cancel()
	r := c.Upstream.NewRequest(ctx, http.MethodGet, path, query.Encode())
	r.Header.Set("Accept", "text/plain, */*")
	resp, err := c.Upstream.As(identity(c.r), r)
	if err != nil {
		return "", true
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxLogBytes))
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", true
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(text), "�")), "\n")
	return strings.TrimSpace(lines[len(lines)-1]), true
}
