// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheetcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// workload are the columns of what has Pods.
const workload = "spec.replicas,status.readyReplicas,spec.template.spec.containers[0].name,spec.template.spec.containers[0].image"

// defaults are the columns of kinds.
var defaults = map[string]string{
	"deployments.apps": workload, "statefulsets.apps": workload, "replicasets.apps": workload,
	"daemonsets.apps":                      "status.desiredNumberScheduled,status.numberReady,spec.template.spec.containers[0].image",
	"pods":                                 "status.phase,spec.nodeName,spec.containers[0].image",
	"nodes":                                `spec.unschedulable,status.conditions[?(@.type=="Ready")].status,status.nodeInfo.kubeletVersion`,
	"configmaps":                           "data",
	"services":                             "spec.type,spec.clusterIP,spec.ports[0].port",
	"namespaces":                           "status.phase,metadata.labels",
	"cronjobs.batch":                       "spec.schedule,spec.suspend,status.lastScheduleTime",
	"jobs.batch":                           "spec.suspend,spec.parallelism,status.succeeded",
	"horizontalpodautoscalers.autoscaling": "spec.minReplicas,spec.maxReplicas,status.currentReplicas",
}

// otherColumns are those of other kinds.
const otherColumns = "metadata.creationTimestamp"

// choose returns the tabs that the command line asks for, with the objects as they are now.
// linked are those that the file has.
func (c *command) choose(ctx context.Context, linked []sheet.Tab, kinds []string) (tabs []sheet.Tab, err error) {
	scoped := c.all || *c.flags.Namespace != ""
	if len(kinds) == 0 {
		if len(linked) == 0 {
			return nil, fmt.Errorf("%s has no worksheet of objects: name kinds to add, such as deployments", c.path)
		}
		if c.columnsSet || c.selectorSet || scoped {
			return nil, fmt.Errorf("%s is refreshed with its own columns, selectors and namespaces: name the kinds to add with others", c.path)
		}
		tabs = linked
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	mapper, err := c.flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for i := range linked {
		names = append(names, linked[i].Name)
	}
	for _, kind := range strings.FieldsFunc(strings.Join(kinds, ","), func(r rune) bool { return r == ',' }) {
		if resource, _, object := strings.Cut(kind, "/"); object {
			return nil, fmt.Errorf("sheet takes kinds, and %q is an object: use %s, with -l for those with a label, such as -l app=web", kind, resource)
		}
		mapping, err := connect.Mapping(mapper, kind)
		if err != nil {
			return nil, err
		}
		t, err := c.tab(mapping, namespace)
		if err != nil {
			return nil, err
		}
		// The same selection is refreshed; another one is a new tab.
		i := slices.IndexFunc(linked, func(l sheet.Tab) bool {
			return l.Resource == t.Resource && l.Namespace == t.Namespace && l.Selector == t.Selector && (!c.columnsSet || slices.Equal(l.Columns, t.Columns))
		})
		if i >= 0 {
			t = linked[i]
		} else {
			t.Name = sheet.TabName(t.Resource.Resource, names)
			names = append(names, t.Name)
		}
		tabs = append(tabs, t)
	}
	for i := range tabs {
		if err := c.read(ctx, &tabs[i]); err != nil {
			return nil, err
		}
		if err := c.check(ctx, &tabs[i]); err != nil {
			return nil, err
		}
	}
	return tabs, nil
}

// check returns an error if a tab is empty because its namespace does not exist, and names the
// columns of --columns that no object has.
func (c *command) check(ctx context.Context, t *sheet.Tab) error {
	if len(t.Rows) == 0 && t.Namespace != "" {
		err := c.cluster.do(ctx, http.MethodGet, []string{"api", "v1", "namespaces", t.Namespace}, nil, nil, nil)
		if failed, ok := errors.AsType[*refusal](err); ok && failed.Code == http.StatusNotFound && failed.Details != nil && failed.Details.Name == t.Namespace {
			return failed
		}
	}
	for i, path := range t.Columns {
		if c.columnsSet && len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(r sheet.Row) bool { return string(r.Values[i]) != "null" }) {
			c.note("no object of %s has a value at %s: check --columns", t.Resource.Resource, path)
		}
	}
	return nil
}

func (c *command) namespace() (string, error) {
	if c.all {
		return "", nil
	}
	if *c.flags.Namespace != "" {
		return *c.flags.Namespace, nil
	}
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil && !clientcmd.IsEmptyConfig(err) {
		return "", fmt.Errorf("no namespace of the current context: %w: use --namespace", err)
	}
	return cmp.Or(namespace, metav1.NamespaceDefault), nil
}

func (c *command) tab(mapping *meta.RESTMapping, namespace string) (t sheet.Tab, err error) {
	r := mapping.Resource
	t = sheet.Tab{Resource: sheet.Resource{Group: r.Group, Version: r.Version, Resource: r.Resource}, Kind: mapping.GroupVersionKind.Kind}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		t.Namespace = namespace
	}
	selector, err := labels.Parse(c.selector)
	if err != nil {
		return t, fmt.Errorf("--selector: %w", err)
	}
	t.Selector = selector.String()
	text := c.columns
	if !c.columnsSet {
		text = cmp.Or(defaults[r.GroupResource().String()], otherColumns)
	}
	if t.Columns, _, err = scan.ParseSteps(text); err != nil {
		return t, fmt.Errorf("--columns: %w", err)
	}
	return t, nil
}

// read reads the objects of a tab.
func (c *command) read(ctx context.Context, t *sheet.Tab) error {
	objects, err := c.cluster.list(ctx, t)
	if err != nil {
		return err
	}
	text := strings.Join(t.Columns, ",")
	if text == "" {
		text = otherColumns // the row is cut
	}
	paths, err := scan.ParseRows(text)
	if err != nil {
		return err
	}
	t.Rows = nil
	for _, object := range objects {
		var values []json.RawMessage
		if err := json.Unmarshal(paths.AppendRow(nil, string(object)), &values); err != nil {
			return err
		}
		r := sheet.Row{Values: values[4 : 4+len(t.Columns)]}
		for i, into := range []*string{&r.Namespace, &r.Name, &r.UID} {
			if err := json.Unmarshal(values[i], into); err != nil {
				return err
			}
		}
		t.Rows = append(t.Rows, r)
	}
	return nil
}
