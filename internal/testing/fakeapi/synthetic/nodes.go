// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeName returns the name of the i-th Node.
func NodeName(i int) string { return fmt.Sprintf("node-%04d.example.internal", i) }

// Node returns the i-th Node, a ready one in one of three zones and four pools.
func Node(i int) *corev1.Node {
	created := time.Date(2026, 2, 1, 0, 0, i, 0, time.UTC)
	allocatable := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("15890m"), corev1.ResourceMemory: resource.MustParse("60Gi"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("95Gi"),
	}
	condition := func(typ corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: typ, Status: status, Reason: reason, Message: "kubelet says so",
			LastHeartbeatTime: metav1.NewTime(created.Add(time.Hour)), LastTransitionTime: metav1.NewTime(created.Add(time.Minute))}
	}
	return &corev1.Node{
		TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: NodeName(i), UID: types.UID(fmt.Sprintf("%08x-0000-4000-a000-000000000000", i)),
			ResourceVersion: fmt.Sprint(FirstRV + i), CreationTimestamp: metav1.NewTime(created),
			Labels: map[string]string{
				"kubernetes.io/hostname": NodeName(i), "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
				"topology.kubernetes.io/zone": fmt.Sprintf("zone-%c", 'a'+i%3), "node.kubernetes.io/pool": fmt.Sprintf("pool-%d", i%4),
			},
		},
		Spec: corev1.NodeSpec{PodCIDR: fmt.Sprintf("10.%d.%d.0/24", i>>8, i&255)},
		Status: corev1.NodeStatus{
			Capacity: allocatable, Allocatable: allocatable,
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
			},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", OSImage: "Debian GNU/Linux 13 (trixie)", Architecture: "amd64"},
		},
	}
}
