// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// workload is a Deployment of `load --life`.
type workload struct {
	namespace, name string
	replicas        int32
	version         int  // minor version of its image
	crashing        bool // its Pods, or those of its new version, crash-loop
}

func (w *workload) String() string { return w.namespace + "/" + w.name }

const (
	// crashLabel makes kwok simulate a crash loop, see stages/pod-crash-*.
	crashLabel = "localcluster.watchkeeper.dev/crash"
	// startAnnotation delays the start of a Pod, see stages/.
	startAnnotation = "localcluster.watchkeeper.dev/start"
)

// life changes the workloads. All choices come from one seeded source in a fixed order,
// so a seed gives the same sequence of changes each time.
type life struct {
	client    kubernetes.Interface
	random    *rand.Rand
	workloads []*workload
}

func runLife(ctx context.Context, client kubernetes.Interface, options loadOptions, out io.Writer) error {
	l := &life{
		client: client,
		random: rand.New(rand.NewPCG(options.seed, 0)),
		workloads: []*workload{
			{namespace: "shop", name: "checkout", replicas: 3},
			{namespace: "shop", name: "cart", replicas: 2},
			{namespace: "shop", name: "payments", replicas: 2},
			{namespace: "ops", name: "agent", replicas: 3},
			{namespace: "ops", name: "collector", replicas: 1},
			{namespace: "data", name: "indexer", replicas: 2},
		},
	}
	var namespaces []string
	for _, w := range l.workloads {
		if !slices.Contains(namespaces, w.namespace) {
			namespaces = append(namespaces, w.namespace)
		}
	}
	if options.cleanup {
		defer func() { deleteNamespaces(context.WithoutCancel(ctx), client, namespaces, out) }()
	}
	if err := l.create(ctx, namespaces); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("creating the Deployments: %w; is the cluster up (localcluster status)?", err)
	}
	fmt.Fprintf(out, "%d deployments live in %v\n", len(l.workloads), namespaces)
	if options.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, options.duration)
		defer cancel()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2*time.Second + time.Duration(l.random.IntN(3000))*time.Millisecond):
		}
		what, err := l.step(ctx)
		if err != nil && ctx.Err() == nil {
			what += ": " + err.Error() // life continues: a fault test may stop the API server
		}
		fmt.Fprintf(out, "%s  %s\n", time.Now().Format(time.TimeOnly), what)
	}
}

// create creates the Deployment and Service of every workload, or resets those of an
// earlier run.
func (l *life) create(ctx context.Context, namespaces []string) error {
	for _, name := range namespaces {
		if err := ensureNamespace(ctx, l.client, name); err != nil {
			return err
		}
	}
	for _, w := range l.workloads {
		deployments := l.client.AppsV1().Deployments(w.namespace)
		_, err := deployments.Create(ctx, w.deployment(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = deployments.Update(ctx, w.deployment(), metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
		if _, err := l.client.CoreV1().Services(w.namespace).Create(ctx, w.service(), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// step changes one workload, and returns a description.
func (l *life) step(ctx context.Context) (string, error) {
	w := l.workloads[l.random.IntN(len(l.workloads))]
	if w.crashing {
		return l.recover(ctx, w)
	}
	switch dice := l.random.IntN(100); {
	case dice < 35:
		w.version++
		return fmt.Sprintf("%s rolls out %s", w, w.image()), l.update(ctx, w)
	case dice < 70:
		replicas := 1 + int32(l.random.IntN(5))
		if replicas == w.replicas {
			replicas++
		}
		what := fmt.Sprintf("%s scales from %d to %d", w, w.replicas, replicas)
		w.replicas = replicas
		return what, l.update(ctx, w)
	case dice < 85:
		w.version++
		w.crashing = true
		return fmt.Sprintf("%s rolls out %s, which crashes", w, w.image()), l.update(ctx, w)
	default:
		w.crashing = true
		return fmt.Sprintf("a pod of %s crash-loops", w), l.labelPod(ctx, w, "true")
	}
}

// recover ends a crash loop: it removes the crash label and rolls out a good version.
func (l *life) recover(ctx context.Context, w *workload) (string, error) {
	w.crashing = false
	w.version++
	what := fmt.Sprintf("%s recovers with %s", w, w.image())
	if err := l.labelPod(ctx, w, ""); err != nil {
		return what, err
	}
	return what, l.update(ctx, w)
}

func (l *life) update(ctx context.Context, w *workload) error {
	_, err := l.client.AppsV1().Deployments(w.namespace).Update(ctx, w.deployment(), metav1.UpdateOptions{})
	return err
}

// labelPod sets the crash label of the workload's first Pod. With an empty value it
// removes the label from all of the workload's Pods.
func (l *life) labelPod(ctx context.Context, w *workload, value string) error {
	pods := l.client.CoreV1().Pods(w.namespace)
	selector := "app=" + w.name
	if value == "" {
		selector += "," + crashLabel
	}
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	label := map[string]any{crashLabel: value}
	if value == "" {
		label[crashLabel] = nil // removes it
	}
	patch := mustJSON(map[string]any{"metadata": map[string]any{"labels": label}})
	for _, pod := range list.Items {
		_, err := pods.Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if value != "" {
			return nil
		}
	}
	return nil
}

func (w *workload) image() string {
	return fmt.Sprintf("registry.example.test/%s/%s:1.%d.0", w.namespace, w.name, w.version)
}

func (w *workload) deployment() *appsv1.Deployment {
	podLabels := map[string]string{"app": w.name}
	if w.crashing {
		podLabels[crashLabel] = "true"
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Labels: map[string]string{"app": w.name, "app.kubernetes.io/managed-by": "localcluster"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &w.replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: map[string]string{startAnnotation: "slow"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:  w.name,
					Image: w.image(),
					Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				}}},
			},
		},
	}
}

func (w *workload) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Labels: map[string]string{"app": w.name}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": w.name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
}
