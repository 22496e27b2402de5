// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func nodeName(i int) string { return fmt.Sprintf("node-%04d.example.internal", i) }

// newNodes is a Server of Nodes.
func newNodes(o Options) (*Server, error) {
	s := &Server{
		bookmarks: o.Bookmarks, changed: make(chan struct{}), compacted: firstRV + int64(o.Nodes), marker: -1,
		random: rand.New(rand.NewPCG(1, 2)),
		encodings: []encoding{
			{format: jsonFormat{"v1", "Node"}, kind: "Node"}, inMetadata,
			{format: tableFormat{jsonFormat{"v1", "Node"}}, table: true, kind: "Node"},
		},
	}
	for i := range o.Nodes {
		n := node(i)
		for j := range s.encodings {
			e := &s.encodings[j]
			var shown runtime.Object = n
			if e.metadata {
				shown = metadataOf(&n.ObjectMeta)
			}
			encoded, err := e.newObject(shown, n.ResourceVersion)
			if err != nil {
				return nil, err
			}
			e.objects = append(e.objects, encoded)
			e.size += e.itemSize(encoded)
		}
		s.pods = append(s.pods, metav1.ObjectMeta{Name: n.Name})
		s.rvs = append(s.rvs, firstRV+int64(i))
	}
	return s, nil
}

// node returns the i-th Node: one of three zones and four pools, ready, as the
// kubelet leaves it.
func node(i int) *corev1.Node {
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
			Name: nodeName(i), UID: types.UID(fmt.Sprintf("%08x-0000-4000-a000-000000000000", i)),
			ResourceVersion: fmt.Sprint(firstRV + i), CreationTimestamp: metav1.NewTime(created),
			Labels: map[string]string{
				"kubernetes.io/hostname": nodeName(i), "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
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
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", OSImage: "Debian GNU/Linux 13 (trixie)", Architecture: "amd64"},
		},
	}
}
