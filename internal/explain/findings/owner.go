// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/explain/api"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

// resources has the resources of built-in kinds.
var resources = map[string]string{
	"Pod": "pods", "Node": "nodes", "Namespace": "namespaces", "ReplicationController": "replicationcontrollers", "PersistentVolumeClaim": "persistentvolumeclaims",
	"ConfigMap": "configmaps", "Secret": "secrets", "ResourceQuota": "resourcequotas", "Service": "services",
	"Deployment": "deployments.apps", "ReplicaSet": "replicasets.apps", "StatefulSet": "statefulsets.apps", "DaemonSet": "daemonsets.apps",
	"Job": "jobs.batch", "CronJob": "cronjobs.batch", "HorizontalPodAutoscaler": "horizontalpodautoscalers.autoscaling",
	"PodDisruptionBudget": "poddisruptionbudgets.policy", "APIService": "apiservices.apiregistration.k8s.io",
}

func refOf(kind, namespace, name string) Ref {
	return Ref{Resource: resources[kind], Kind: kind, Key: kube.MakeKey(namespace, name)}
}

func podRef(pod *corev1.Pod) Ref { return refOf("Pod", pod.Namespace, pod.Name) }

// workload returns what an object belongs to: the controller of a Pod, and for a ReplicaSet or a
// Job the Deployment or CronJob that controls it; otherwise the object itself, also if it has an
// operator. A static Pod is its own: its controller is a Node.
func (s *State) workload(of Ref, owners []metav1.OwnerReference) Ref {
	for range 2 {
		i := slices.IndexFunc(owners, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller })
		if i < 0 || owners[i].Kind == "Node" || !slices.Contains([]string{"Pod", "ReplicaSet", "Job"}, of.Kind) {
			return of
		}
		of = refOf(owners[i].Kind, of.Key.Namespace(), owners[i].Name)
		if of.Kind != "ReplicaSet" && of.Kind != "Job" {
			return of
		}
		l := s.get(of)
		if l == nil {
			return of
		}
		owners = l.Metadata.OwnerReferences
	}
	return of
}

func (s *State) podWorkload(pod *corev1.Pod) Ref { return s.workload(podRef(pod), pod.OwnerReferences) }

// unavailable reports whether a workload itself says that none of its Pods is available, or
// too few of a Deployment's. One that is being deleted should have none.
func (s *State) unavailable(workload Ref) bool {
	switch workload.Kind {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController":
	default:
		return false
	}
	l := s.get(workload)
	if l == nil || l.Metadata.DeletionTimestamp != nil {
		return false
	}
	if c, ok := l.Condition("Available"); ok && c.Status == "False" && workload.Kind == "Deployment" {
		return true
	}
	if workload.Kind == "DaemonSet" {
		return l.Status.DesiredNumberScheduled > 0 && l.Status.NumberAvailable == 0
	}
	return l.Replicas() > 0 && l.Status.AvailableReplicas == 0
}

// complete reports whether a workload says that all of its Pods are available.
func (s *State) complete(workload Ref) bool {
	l := s.get(workload)
	if l == nil || l.Spec.Replicas == nil {
		return false
	}
	return l.Status.AvailableReplicas >= *l.Spec.Replicas
}

// severity is that of a failure of some Pods: critical if the workload is unavailable.
func (s *State) severity(workload Ref) string {
	if s.unavailable(workload) {
		return api.SeverityCritical
	}
	return api.SeverityWarning
}

// relate adds the objects whose changes may matter to a finding.
func (s *State) relate(f *Finding) {
	related := append([]Ref{f.Subject}, f.Related...)
	var template *corev1.PodSpec
	nodes := map[string]bool{}
	objects := map[Ref]bool{}
	for _, o := range f.Objects {
		objects[o] = o.Kind == "Pod"
	}
	for _, pod := range s.pods {
		if !objects[podRef(pod)] {
			continue
		}
		if template == nil {
			template = &pod.Spec
		}
		if pod.Spec.NodeName != "" {
			nodes[pod.Spec.NodeName] = true
		}
	}
	if l := s.get(f.Subject); template == nil && l != nil && l.PodTemplate() != nil {
		template = &l.PodTemplate().Spec
	}
	// What Pods use does not matter to a Node or a budget.
	if template != nil && f.Subject.Kind != "Node" && f.Subject.Kind != "PodDisruptionBudget" {
		for _, u := range change.Uses(template) {
			related = append(related, refOf(u.Kind, f.Subject.Key.Namespace(), u.Name))
		}
	}
	if len(nodes) <= maxNodes { // otherwise it is not about them
		for name := range nodes {
			related = append(related, refOf("Node", "", name))
		}
	}
	for _, h := range s.autoscalers {
		if target := h.Spec.ScaleTargetRef; h.Namespace == f.Subject.Key.Namespace() && target.Kind == f.Subject.Kind && target.Name == f.Subject.Key.Name() {
			related = append(related, refOf("HorizontalPodAutoscaler", h.Namespace, h.Name))
		}
	}
	for _, text := range f.Messages {
		for _, name := range quotaNames(text) {
			f.Quota = true
			related = append(related, refOf("ResourceQuota", f.Subject.Key.Namespace(), name))
		}
	}
	slices.SortFunc(related[1:], compareRefs)
	f.Related = slices.Compact(related)
}

// maxNodes is of how many Nodes the changes matter to Pods that fail alike.
const maxNodes = 3

// quotaNames returns the quotas that an error names: "exceeded quota: compute, requested: …".
func quotaNames(text string) (names []string) {
	for {
		_, rest, ok := strings.Cut(text, "exceeded quota: ")
		if !ok {
			return names
		}
		name, _, _ := strings.Cut(rest, ",")
		names, text = append(names, name), rest
	}
}

// maxText bounds a message, in bytes.
const maxText = 400

// oneLine returns a text on one line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// because joins what is known of a reason.
func because(parts ...string) string {
	for i, part := range parts {
		parts[i] = oneLine(part)
	}
	return change.Because(parts...)
}

// minAge is after which time a Pod that is not ready, and an object that is being deleted, is
// a finding, and minUnscheduled after which a Pod that is not scheduled is. The page has the
// same (ui/src/app/attention.ts).
const (
	minAge         = time.Minute
	minUnscheduled = 10 * time.Second
)
