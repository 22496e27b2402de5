// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FirstRV leaves room for nine thousand million changes whose resourceVersions
// all have the same number of digits.
const FirstRV = 1_000_000_000

const (
	owners     = 500
	namespaces = 100
)

// Pod returns the i-th Pod, a running one of a Deployment. It has about 4.6 KB of
// compact JSON, 1.4 KB of them managedFields, and the resourceVersion FirstRV + i.
func Pod(i int) *corev1.Pod {
	rnd := rand.New(rand.NewPCG(uint64(i), 1))
	random := func(n int) string {
		b := make([]byte, n/2)
		for j := range b {
			b[j] = byte(rnd.Uint32())
		}
		return hex.EncodeToString(b)
	}
	uid := func() string {
		return random(8) + "-" + random(4) + "-4" + random(4)[1:] + "-a" + random(4)[1:] + "-" + random(12)
	}
	owner := i % owners
	app := fmt.Sprintf("service-%03d", owner)
	shared := rand.New(rand.NewPCG(uint64(owner), 2)) // the same for all Pods of an owner
	hash := fmt.Sprintf("%010x", shared.Uint64()>>24)
	replicaSet := app + "-" + hash
	namespace := fmt.Sprintf("team-%02d", owner%namespaces)
	image := fmt.Sprintf("registry.example.com/%s/%s", namespace, app)
	digest := fmt.Sprintf("%016x%016x%016x%016x", shared.Uint64(), shared.Uint64(), shared.Uint64(), shared.Uint64())
	node := fmt.Sprintf("node-%04d.example.internal", rnd.IntN(1000))
	hostIP := fmt.Sprintf("10.%d.%d.%d", rnd.IntN(4), rnd.IntN(256), 1+rnd.IntN(254))
	podIP := fmt.Sprintf("10.%d.%d.%d", 128+i>>16, i>>8&255, i&255)
	created := time.Date(2026, 3, 1, 0, 0, rnd.IntN(5_000_000), 0, time.UTC)
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(created.Add(time.Duration(seconds) * time.Second))
	}
	token := "kube-api-access-" + random(6)[:5]
	quantity := resource.MustParse
	yes, no := true, false

	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: replicaSet + "-" + suffix(i), GenerateName: replicaSet + "-", Namespace: namespace,
			UID: types.UID(uid()), ResourceVersion: fmt.Sprint(FirstRV + int64(i)), Generation: 1, CreationTimestamp: at(0),
			Labels: map[string]string{
				"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app + "-main",
				"pod-template-hash": hash, "tier": "backend",
			},
			Annotations: map[string]string{
				"prometheus.io/scrape": "true", "prometheus.io/port": "9102",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet, Controller: &yes, BlockOwnerDeletion: &yes,
				UID: types.UID(fmt.Sprintf("%08x-0000-4000-a000-%012x", owner, shared.Uint64()>>16)),
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				managed("kube-controller-manager", "", at(0), controllerFields),
				managed("kubelet", "status", at(9), kubeletFields(podIP)),
			},
		},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{
				{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					DefaultMode: new(int32(420)),
					Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
						{ConfigMap: &corev1.ConfigMapProjection{
							LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
							Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
					}}}},
			},
			Containers: []corev1.Container{{
				Name: "app", Image: image + ":1.14.2",
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
				Env: []corev1.EnvVar{
					{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
				},
				Resources: corev1.ResourceRequirements{
					Limits:   corev1.ResourceList{corev1.ResourceMemory: quantity("512Mi")},
					Requests: corev1.ResourceList{corev1.ResourceCPU: quantity("250m"), corev1.ResourceMemory: quantity("256Mi")},
				},
				VolumeMounts: []corev1.VolumeMount{
					{Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
				},
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				ImagePullPolicy: corev1.PullIfNotPresent,
				SecurityContext: &corev1.SecurityContext{RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no},
			}},
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)), DNSPolicy: corev1.DNSClusterFirst,
			ServiceAccountName: app, DeprecatedServiceAccount: app, NodeName: node, SecurityContext: &corev1.PodSecurityContext{},
			SchedulerName: "default-scheduler", Priority: new(int32(0)), EnableServiceLinks: &yes,
			PreemptionPolicy: new(corev1.PreemptLowerPriority),
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: at(1)},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(9)},
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: at(9)},
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(1)},
			},
			HostIP: hostIP, HostIPs: []corev1.HostIP{{IP: hostIP}},
			PodIP: podIP, PodIPs: []corev1.PodIP{{IP: podIP}}, StartTime: new(at(1)),
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Ready: true, Started: &yes, Image: image + ":1.14.2", ImageID: image + "@sha256:" + digest,
				ContainerID: "containerd://" + random(64),
				State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(3)}},
			}},
			QOSClass: corev1.PodQOSBurstable,
		},
	}
}

// suffix returns the end of the i-th Pod's name, which is unique.
func suffix(i int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	n := i * 1_000_003 // has no factor in common with 27
	var b [5]byte
	for j := range b {
		b[j] = letters[n%len(letters)]
		n /= len(letters)
	}
	return string(b[:])
}

func managed(manager, subresource string, at metav1.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource,
	}
}

const controllerFields = `{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},` +
	`"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/name":{},"f:pod-template-hash":{},"f:tier":{}},` +
	`"f:ownerReferences":{".":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{}},"f:image":{},"f:name":{},` +
	`"f:ports":{".":{}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:securityContext":{".":{}},` +
	`"f:terminationMessagePath":{},"f:volumeMounts":{".":{}}}},` +
	`"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:serviceAccount":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{}}}}`

func kubeletFields(podIP string) string {
	return `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},` +
		`"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}},` +
		`"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"` + podIP + `\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`
}
