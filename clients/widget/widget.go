// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package widget is the controller of examples/widget, written with controller-runtime,
// for a comparison: measure runs it with the stock cache (stock) and with the cache of
// clientgo.ForManager (formanager), and measures both next to the original. All three
// make the same changes in the same situations, with the same number of workers and
// client-go's default rate limits.
package widget

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddToScheme adds the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s.AddKnownTypes(version, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(s, version)
	return nil
}

// A Widget asks for a ConfigMap of its name that has its data.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// A Spec is what a user wants.
type Spec struct {
	Data map[string]string `json:"data,omitempty"`
	TTL  *metav1.Duration  `json:"ttl,omitempty"` // since the creation; nil for ever
}

// A Status is written by the controller.
type Status struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	Ready              bool  `json:"ready,omitempty"`
}

// A WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyInto makes out a copy that shares nothing with w.
func (w *Widget) DeepCopyInto(out *Widget) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Data = maps.Clone(w.Spec.Data)
	if w.Spec.TTL != nil {
		out.Spec.TTL = new(*w.Spec.TTL)
	}
}

// DeepCopy returns a copy that shares nothing with w.
func (w *Widget) DeepCopy() *Widget {
	out := new(Widget)
	w.DeepCopyInto(out)
	return out
}

// DeepCopyObject is DeepCopy for the scheme.
func (w *Widget) DeepCopyObject() runtime.Object { return w.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing with l.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = slices.Clone(l.Items)
	for i := range out.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return &out
}
