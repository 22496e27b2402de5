// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// A Widget asks for a ConfigMap of its name that has its data.
type Widget struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Data map[string]string `json:"data"`
		TTL  *metav1.Duration  `json:"ttl"` // since the creation; nil for ever
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Ready              bool  `json:"ready"`
	} `json:"status"`
}
