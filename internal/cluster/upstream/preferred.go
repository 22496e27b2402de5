// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// requestTimeout bounds each request for discovery and metadata.
const requestTimeout = 15 * time.Second

// A Preferred has the resources that the API server serves, each in the preferred
// version of its group.
type Preferred struct {
	// Kinds are the kinds of the resources that can be listed and watched.
	Kinds map[kube.Resource]string
	// Names are other names of these resources, in lower case: the kind, the singular,
	// and short names.
	Names map[kube.Resource][]string
	// Unknown are the groups whose resources are unknown, such as those of an aggregated
	// API server that is out of service, and why.
	Unknown map[string]error
}

// Preferred reads discovery.
func (u *Server) Preferred(ctx context.Context) (Preferred, error) {
	base := *u.URL("/", "")
	base.Path = strings.TrimSuffix(base.Path, "/")
	client, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: base.String()},
		&http.Client{Transport: u.Agent(), Timeout: requestTimeout})
	if err != nil {
		return Preferred{}, err
	}
	lists, err := client.ServerPreferredResourcesWithContext(ctx)
	out := Preferred{Kinds: map[kube.Resource]string{}, Names: map[kube.Resource][]string{}, Unknown: map[string]error{}}
	if partial, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		for gv, why := range partial.Groups {
			out.Unknown[gv.Group] = why
		}
	} else if err != nil {
		return Preferred{}, err
	}
	for _, list := range lists {
		group, version, ok := strings.Cut(list.GroupVersion, "/")
		if !ok {
			group, version = "", list.GroupVersion
		}
		for _, res := range list.APIResources {
			if slices.Contains(res.Verbs, "list") && slices.Contains(res.Verbs, "watch") && !strings.Contains(res.Name, "/") {
				id := kube.Resource{Group: group, Version: version, Name: res.Name}
				out.Kinds[id] = res.Kind
				out.Names[id] = append([]string{strings.ToLower(res.Kind), res.SingularName}, res.ShortNames...)
			}
		}
	}
	return out, nil
}
