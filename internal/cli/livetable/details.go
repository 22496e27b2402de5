// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// The tabs of [ObjectDetails].
const (
	tabDescribe = "describe"
	tabYAML     = "yaml"
	tabVersions = "versions"
	tabDiff     = "diff"
)

// ObjectDetails are [Details] that are read from the server of each [Watch].
type ObjectDetails struct {
	// Describe returns what kubectl describe prints; nil if there is no such tab.
	Describe func(context.Context, Object) (string, error)
	// Gateway has the versions of objects; nil if the server is not a gateway with a history.
	Gateway *Gateway
}

// Tabs implements [Details].
func (d *ObjectDetails) Tabs(Object) (tabs []string) {
	if d.Describe != nil {
		tabs = append(tabs, tabDescribe)
	}
	if tabs = append(tabs, tabYAML); d.Gateway != nil {
		tabs = append(tabs, tabVersions, tabDiff)
	}
	return tabs
}

// Text implements [Details].
func (d *ObjectDetails) Text(ctx context.Context, o Object, tab string) (string, error) {
	switch tab {
	case tabDescribe:
		return d.Describe(ctx, o)
	case tabYAML:
		return asYAML(ctx, o)
	case tabVersions:
		return d.Gateway.versions(ctx, o)
	case tabDiff:
		return d.Gateway.diff(ctx, o)
	}
	return "", fmt.Errorf("there is no %s", tab)
}

// url returns the URL of an object, or of its subresource, at the object's moment.
func (o Object) url(subresource string) *url.URL {
	c := feed.Collection{Base: o.Watch.Base, Resource: o.Watch.Resource, Namespace: o.Namespace}
	prefix := ""
	if o.At != "" {
		prefix = "/at/" + o.At
	}
	return c.URL(prefix).JoinPath(o.Name, subresource)
}

// path returns the path of an object, as the history API takes it.
func (o Object) path() string {
	c := feed.Collection{Base: &url.URL{}, Resource: o.Watch.Resource, Namespace: o.Namespace}
	return "/" + strings.TrimPrefix(c.URL("").JoinPath(o.Name).Path, "/")
}

// maxObject is more than any object has.
const maxObject = 64 << 20

// asYAML returns an object as kubectl get -o yaml prints it, without managedFields.
func asYAML(ctx context.Context, o Object) (string, error) {
	body, err := feed.Get(ctx, o.Watch.Transport, o.url(""), "application/json")
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxObject))
	if err != nil {
		return "", err
	}
	return toYAML(text)
}

func toYAML(text []byte) (string, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return "", err
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	out, err := yaml.Marshal(content)
	return string(out), err
}

// versions lists what has changed in an object, the newest first.
func (g *Gateway) versions(ctx context.Context, o Object) (string, error) {
	query := url.Values{}
	if o.At != "" {
		query.Set("until", o.At)
	}
	var page api.Versions
	if err := g.get(ctx, "versions"+o.path(), query, &page); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, v := range page.Items {
		by := ""
		for _, m := range v.By {
			by += " by " + m.Manager
		}
		fmt.Fprintf(&b, "%s  %s%s\n", v.Time.Local().Format("2006-01-02 15:04:05.000"), v.Type, by)
		for _, s := range v.Summary {
			fmt.Fprintf(&b, "    %s\n", s)
		}
	}
	if page.Continue != "" {
		b.WriteString("older versions are not shown\n")
	}
	return cmp.Or(b.String(), "no versions are recorded"), nil
}

// diff shows what the last change of an object has changed.
func (g *Gateway) diff(ctx context.Context, o Object) (string, error) {
	query := url.Values{"objects": {"true"}, "limit": {"20"}}
	if o.At != "" {
		query.Set("until", o.At)
	}
	var page api.Versions
	if err := g.get(ctx, "versions"+o.path(), query, &page); err != nil {
		return "", err
	}
	for _, v := range page.Items {
		if v.Before == nil || v.Type == api.Folded {
			continue
		}
		before, err := toYAML(v.Before)
		if err != nil {
			return "", err
		}
		after := ""
		if v.Object != nil && v.Type != api.Deleted {
			if after, err = toYAML(v.Object); err != nil {
				return "", err
			}
		}
		head := fmt.Sprintf("%s  %s: %s\n", v.Time.Local().Format("2006-01-02 15:04:05.000"), v.Type, strings.Join(v.Summary, ", "))
		return head + udiff.Unified("before", "after", before, after), nil
	}
	return "no change is recorded", nil
}

// logLines is how much of a log is shown at first.
const logLines = "500"

// Logs implements [Details]: the log of the Pod's default container, or its first.
func (d *ObjectDetails) Logs(ctx context.Context, o Object) (io.ReadCloser, error) {
	o.At = "" // logs are not recorded
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := feed.Get(limited, o.Watch.Transport, o.url(""), "application/json")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var pod struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct{ Containers []struct{ Name string } }
	}
	if err := json.NewDecoder(io.LimitReader(body, maxObject)).Decode(&pod); err != nil {
		return nil, err
	}
	container := pod.Metadata.Annotations["kubectl.kubernetes.io/default-container"]
	if container == "" && len(pod.Spec.Containers) > 0 {
		container = pod.Spec.Containers[0].Name
	}
	u := o.url("log")
	u.RawQuery = url.Values{"follow": {"true"}, "tailLines": {logLines}, "container": {container}}.Encode()
	return feed.Get(ctx, o.Watch.Transport, u, "text/plain, */*")
}
