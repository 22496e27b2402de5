// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// usage is a line of the file of `localcluster metrics`.
type usage struct {
	namespace, prefix string
	cpu, memory       resource.Quantity
	shared            bool // the CPU, by all running Pods of the line
}

func readUsage(file string) ([]usage, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var result []usage
	for number, line := range strings.Split(string(data), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 4 {
			return nil, fmt.Errorf("%s:%d: want NAMESPACE POD-PREFIX CPU MEMORY", file, number+1)
		}
		u := usage{namespace: fields[0], prefix: fields[1]}
		var cpu string
		cpu, u.shared = strings.CutSuffix(fields[2], "/n")
		if u.cpu, err = resource.ParseQuantity(cpu); err == nil {
			u.memory, err = resource.ParseQuantity(fields[3])
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number+1, err)
		}
		result = append(result, u)
	}
	return result, nil
}

// podMetrics returns a sample of each running Pod, which its containers share equally.
func podMetrics(ctx context.Context, client kubernetes.Interface, file, namespace, selector string) (*metricsv1beta1.PodMetricsList, error) {
	lines, err := readUsage(file)
	if err != nil {
		return nil, err
	}
	// All Pods, because a shared line counts them.
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	matches, err := labels.Parse(selector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	counts := make([]int64, len(lines)+1)
	line := make([]int, len(pods.Items))
	for i, pod := range pods.Items {
		line[i] = lineOf(lines, pod)
		if sampled(pod) {
			counts[line[i]]++
		}
	}
	list := &metricsv1beta1.PodMetricsList{TypeMeta: metav1.TypeMeta{APIVersion: metricsv1beta1.SchemeGroupVersion.String(), Kind: "PodMetricsList"}}
	for i, pod := range pods.Items {
		if !sampled(pod) || !matches.Matches(labels.Set(pod.Labels)) {
			continue
		}
		cpu, memory := int64(1), int64(16<<20)
		if l := line[i]; l < len(lines) {
			cpu, memory = lines[l].cpu.MilliValue(), lines[l].memory.Value()
			if lines[l].shared {
				cpu /= counts[l]
			}
		}
		list.Items = append(list.Items, podSample(pod, cpu, memory))
	}
	return list, nil
}

// lineOf returns the index of the first line that fits the Pod, or the number of lines.
func lineOf(lines []usage, pod corev1.Pod) int {
	for i, line := range lines {
		if line.namespace == pod.Namespace && strings.HasPrefix(pod.Name, line.prefix) {
			return i
		}
	}
	return len(lines)
}

// sampled reports whether metrics-server would have a sample of the Pod: all of its
// containers run.
func sampled(pod corev1.Pod) bool {
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Running == nil {
			return false
		}
	}
	return pod.Status.Phase == corev1.PodRunning
}

func podSample(pod corev1.Pod, milliCPU, memory int64) metricsv1beta1.PodMetrics {
	metrics := metricsv1beta1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels, CreationTimestamp: metav1.Now()},
		Timestamp:  metav1.Now(),
		Window:     metav1.Duration{Duration: metricsWindow},
	}
	n := int64(len(pod.Spec.Containers))
	for _, container := range pod.Spec.Containers {
		metrics.Containers = append(metrics.Containers, metricsv1beta1.ContainerMetrics{
			Name:  container.Name,
			Usage: quantities(milliCPU/n, memory/n),
		})
	}
	return metrics
}

func quantities(milliCPU, memory int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}
}

// nodeMetrics returns the sums of the Pods of each Node.
func nodeMetrics(ctx context.Context, client kubernetes.Interface, file string) (*metricsv1beta1.NodeMetricsList, error) {
	samples, err := podMetrics(ctx, client, file, metav1.NamespaceAll, "")
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	type name struct{ namespace, name string }
	nodeOf := map[name]string{}
	for _, pod := range pods.Items {
		nodeOf[name{pod.Namespace, pod.Name}] = pod.Spec.NodeName
	}
	cpu, memory := map[string]int64{}, map[string]int64{}
	for _, sample := range samples.Items {
		node := nodeOf[name{sample.Namespace, sample.Name}]
		for _, container := range sample.Containers {
			cpu[node] += container.Usage.Cpu().MilliValue()
			memory[node] += container.Usage.Memory().Value()
		}
	}
	list := &metricsv1beta1.NodeMetricsList{TypeMeta: metav1.TypeMeta{APIVersion: metricsv1beta1.SchemeGroupVersion.String(), Kind: "NodeMetricsList"}}
	for _, node := range nodes.Items {
		list.Items = append(list.Items, metricsv1beta1.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, CreationTimestamp: metav1.Now()},
			Timestamp:  metav1.Now(),
			Window:     metav1.Duration{Duration: metricsWindow},
			Usage:      quantities(cpu[node.Name], memory[node.Name]),
		})
	}
	return list, nil
}
