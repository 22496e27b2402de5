// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// loadApps name the workloads that the Pods belong to.
var loadApps = []string{"checkout", "cart", "catalog", "payments", "search", "recommender", "inventory", "notifier"}

// podsPerOwner is the number of Pods with the same owner.
const podsPerOwner = 20

func namespaceName(n int) string { return fmt.Sprintf("load-%d", n) }

func (l *loader) namespace(i int) string { return namespaceName(i % l.options.namespaces) }

// owner returns the number of the slot's owner within its namespace.
func (l *loader) owner(i int) int { return i / l.options.namespaces / podsPerOwner }

func (l *loader) ownerName(i int) string {
	owner := l.owner(i)
	return loadApps[owner%len(loadApps)] + "-" + l.word(10, "owner", i%l.options.namespaces, owner)
}

func (l *loader) podName(i int) string {
	return l.ownerName(i) + "-" + l.word(5, "pod", i, l.slots[i].generation)
}

// word returns a suffix like those that Kubernetes generates. It depends on the seed
// and the arguments only.
func (l *loader) word(length int, kind string, numbers ...int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	hash := fnv.New64a()
	fmt.Fprint(hash, l.options.seed, kind, numbers)
	random := rand.New(rand.NewPCG(hash.Sum64(), 0))
	word := make([]byte, length)
	for i := range word {
		word[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(word)
}

// makeOwners creates the ConfigMaps that own the Pods. Owners must exist, or the
// garbage collector deletes the Pods. They are not ReplicaSets, whose controller would
// create and delete Pods.
func (l *loader) makeOwners(ctx context.Context) error {
	for i := range l.slots {
		if i/l.options.namespaces%podsPerOwner != 0 {
			continue // not the first slot of its owner
		}
		owner := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: l.ownerName(i), Labels: map[string]string{"app.kubernetes.io/managed-by": "localcluster"}},
			Data:       map[string]string{"LOG_LEVEL": "info", "FEATURES": "fast-path,retry"},
		}
		configMaps := l.client.CoreV1().ConfigMaps(l.namespace(i))
		made, err := configMaps.Create(ctx, owner, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			made, err = configMaps.Get(ctx, owner.Name, metav1.GetOptions{})
		}
		if err != nil {
			return err
		}
		l.owners[l.namespace(i)+"/"+owner.Name] = made.UID
	}
	return nil
}

// pod returns the Pod of the slot's current generation. With managedFields and the
// status that kwok adds, it is slightly more than 4 KB of JSON.
func (l *loader) pod(i int) *corev1.Pod {
	ownerName := l.ownerName(i)
	app := loadApps[l.owner(i)%len(loadApps)]
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: l.podName(i),
			Labels: map[string]string{
				"app.kubernetes.io/name":       app,
				"app.kubernetes.io/managed-by": "localcluster",
				"pod-template-hash":            ownerName[len(app)+1:],
				slotLabel:                      fmt.Sprintf("%d.%d", i, l.slots[i].generation),
			},
			Annotations: map[string]string{
				"prometheus.io/scrape": "true",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: ownerName, UID: l.owners[l.namespace(i)+"/"+ownerName],
				Controller: &controller, BlockOwnerDeletion: &controller,
			}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{l.container(app, i)},
			// The scheduler would be the bottleneck for 10,000 Pods.
			NodeName: l.nodes[i%len(l.nodes)],
			// The token's volume would be a sixth of the Pod.
			AutomountServiceAccountToken: new(bool),
		},
	}
}

func (l *loader) container(app string, i int) corev1.Container {
	return corev1.Container{
		Name:  app,
		Image: "registry.example.test/shop/" + app + ":1." + strconv.Itoa(l.owner(i)%40) + ".0",
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		Env: []corev1.EnvVar{
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "DATABASE_URL", Value: "postgres://" + app + "@database.data.svc:5432/" + app},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("http")}},
			PeriodSeconds: 5, TimeoutSeconds: 2, FailureThreshold: 3,
		},
	}
}

// metadataPatch changes a label and an annotation.
func metadataPatch(random *rand.Rand, change int) []byte {
	return mustJSON(map[string]any{"metadata": map[string]any{
		"labels":      map[string]string{"canary": strconv.FormatBool(random.IntN(10) == 0)},
		"annotations": map[string]string{"localcluster.watchkeeper.dev/change": strconv.Itoa(change)},
	}})
}

// statusPatch makes a Pod ready or, one time in four, not ready.
func statusPatch(random *rand.Rand) []byte {
	status, reason := "True", ""
	if random.IntN(4) == 0 {
		status, reason = "False", "ContainersNotReady"
	}
	var conditions []map[string]any
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		conditions = append(conditions, map[string]any{
			"type": kind, "status": status, "reason": reason,
			"message":            fmt.Sprintf("probe took %d ms", 1+random.IntN(400)),
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
	}
	return mustJSON(map[string]any{"status": map[string]any{"conditions": conditions}})
}

// mustJSON encodes a value whose encoding cannot fail.
func mustJSON(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}
