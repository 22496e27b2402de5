// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/explain/api"
)

// endpointsFound finds Services that have endpoints, none of which is ready, as their
// EndpointSlices say. A Service without Pods is no failure: nothing says that it should have
// any.
func (s *State) endpointsFound(g *group) {
	type counts struct{ ready, others int }
	all := map[Ref]*counts{}
	slices.SortFunc(s.slices, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	var order []Ref
	for _, slice := range s.slices {
		name := slice.Labels[discoveryv1.LabelServiceName]
		if name == "" {
			continue
		}
		ref := refOf("Service", slice.Namespace, name)
		if all[ref] == nil {
			all[ref] = &counts{}
			order = append(order, ref)
		}
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				all[ref].ready++
			} else if e.Conditions.Terminating == nil || !*e.Conditions.Terminating {
				all[ref].others++
			}
		}
	}
	for _, ref := range order {
		if n := all[ref]; n.ready == 0 && n.others > 0 {
			f := g.of(ref, "", api.SeverityCritical)
			f.Objects = append(f.Objects, ref)
			f.Title = fmt.Sprintf("no endpoint is ready: %d not ready", n.others)
		}
	}
}

// An apiService is one that the API server has registered.
type apiService struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// apiServices finds APIServices that are not available.
func (s *State) apiServices(g *group) {
	for _, a := range s.services {
		for _, c := range a.Status.Conditions {
			if c.Type != "Available" || c.Status != metav1.ConditionFalse || s.at("apiservices.apiregistration.k8s.io").Sub(transition(&a.Metadata, c.LastTransitionTime)) < time.Second {
				continue
			}
			f := g.of(refOf("APIService", "", a.Metadata.Name), "", api.SeverityCritical)
			f.Objects = append(f.Objects, f.Subject)
			f.from(transition(&a.Metadata, c.LastTransitionTime))
			f.say(because(c.Reason, c.Message))
			f.Title = "not available"
		}
	}
}
