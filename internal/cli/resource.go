// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// A named is a resource, or one of its objects, that the command line names.
type named struct {
	resource   kube.Resource
	namespaced bool
	name       string
}

// parseNamed splits RESOURCE/NAME, or RESOURCE and NAME.
func parseNamed(args []string) (resource, name string, err error) {
	switch len(args) {
	case 1:
		resource, name, _ = strings.Cut(args[0], "/")
		if strings.Contains(args[0], "/") && name == "" || strings.Contains(name, "/") {
			return "", "", fmt.Errorf("%q is not RESOURCE/NAME", args[0])
		}
	case 2:
		if resource, name = args[0], args[1]; strings.Contains(resource+name, "/") {
			return "", "", fmt.Errorf("%q and %q: use either RESOURCE/NAME or RESOURCE NAME", resource, name)
		}
	default:
		return "", "", fmt.Errorf("expected one resource and one name, but got %q", args)
	}
	return resource, name, nil
}

// notRecording refuses a file that a command takes for a resource.
func notRecording(command, arg string) error {
	if _, err := os.Stat(arg); err != nil || !strings.HasSuffix(arg, ".wkr") {
		return nil
	}
	return fmt.Errorf("%s is a recording: %s reads it while 'watchkeeper open %[1]s' serves it", arg, command)
}

// splitCommas splits lists such as deploy,rs, as kubectl does.
func splitCommas(args []string) []string {
	var all []string
	for _, arg := range args {
		all = append(all, strings.Split(arg, ",")...)
	}
	return all
}

// A resolver finds resources by any of kubectl's names for them.
type resolver struct{ mapper meta.RESTMapper }

// resolver runs discovery at the gateway.
func (c *client) resolver(ctx context.Context) (*resolver, error) {
	if h, err := c.history(ctx); err == nil && len(h.Resources) == 0 && h.Recording.State == api.RecordingFailed {
		return nil, c.errNothing(h) // do not wait for an API server that does not answer
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: c.server, UserAgent: userAgent()}, &http.Client{Transport: once{c.http.Transport}})
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, d)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) { // client-go hides the answer
		if _, err := c.history(ctx); err != nil {
			return nil, err
		}
		body, err := c.open(ctx, "/api", nil)
		if err != nil {
			return nil, err
		}
		body.Close()
	}
	if err != nil {
		return nil, c.unreachable(err)
	}
	known := known{d, groups}
	return &resolver{restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groups), known, nil)}, nil
}

// once keeps client-go from repeating a request for seconds: the gateway knows at once
// whether it can answer.
type once struct{ base http.RoundTripper }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.base.RoundTrip(r)
	if err == nil {
		resp.Header.Del("Retry-After")
	}
	return resp, err
}

// known lets the shortcut expander use the discovery that was already run.
type known struct {
	discovery.DiscoveryInterface
	groups []*restmapper.APIGroupResources
}

// ServerGroupsAndResources implements discovery.ServerResourcesInterface.
func (k known) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	var groups []*metav1.APIGroup
	var lists []*metav1.APIResourceList
	for _, g := range k.groups {
		groups = append(groups, &g.Group)
		for version, resources := range g.VersionedResources {
			gv := schema.GroupVersion{Group: g.Group.Name, Version: version}
			lists = append(lists, &metav1.APIResourceList{GroupVersion: gv.String(), APIResources: resources})
		}
	}
	return groups, lists, nil
}

// find resolves a name such as deploy, deployments, deployments.apps or
// Deployment.
func (r *resolver) find(text string) (named, error) {
	mapping, err := connect.Mapping(r.mapper, text)
	if err != nil {
		return named{}, fmt.Errorf("there is no resource %q: 'kubectl api-resources' lists all resources", text)
	}
	gvr := mapping.Resource
	return named{
		resource:   kube.Resource{Group: gvr.Group, Version: gvr.Version, Name: gvr.Resource},
		namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}, nil
}

// path returns the API path; without a namespace, that of the collection in all
// namespaces.
func (n named) path(namespace string) string {
	if !n.namespaced {
		namespace = ""
	}
	path := n.resource.ListPath(namespace)
	if n.name != "" {
		path += "/" + n.name
	}
	return path
}

// describe returns the resource or object for messages.
func (n named) describe(namespace string) string {
	text := n.resource.GroupResource()
	switch {
	case n.name != "" && n.namespaced:
		return text + " " + namespace + "/" + n.name
	case n.name != "":
		return text + " " + n.name
	case n.namespaced && namespace != "":
		return text + " in namespace " + namespace
	}
	return text
}
