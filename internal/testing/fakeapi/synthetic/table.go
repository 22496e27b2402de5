// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Columns are the columns of Pods in a Table. Nodes are printed in the same ones.
var Columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "the name, unique in its namespace"},
	{Name: "Ready", Type: "string", Description: "how many of the containers are ready"},
	{Name: "Status", Type: "string", Description: "the phase, or why the Pod is not in the next one"},
	{Name: "Restarts", Type: "string", Description: "how often containers were restarted"},
	{Name: "Age", Type: "string", Description: "the time since it was created"},
	{Name: "IP", Type: "string", Priority: 1, Description: "the address of the Pod"},
	{Name: "Node", Type: "string", Priority: 1, Description: "the node it runs on"},
	{Name: "Nominated Node", Type: "string", Priority: 1, Description: "the node it may run on after a preemption"},
	{Name: "Readiness Gates", Type: "string", Priority: 1, Description: "the conditions it waits for"},
}

// Cells returns the row of a Pod or a Node under Columns.
func Cells(o runtime.Object) []any {
	switch o := o.(type) {
	case *corev1.Node:
		return []any{o.Name, "", "Ready", "", "5d", "", "", "", ""}
	case *corev1.Pod:
		return []any{o.Name, "1/1", string(o.Status.Phase), "0", "5d", o.Status.PodIP, o.Spec.NodeName, "<none>", "<none>"}
	}
	return make([]any, len(Columns))
}
