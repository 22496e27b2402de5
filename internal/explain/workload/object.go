// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

// An Object has the members of a workload, and of what schedules, scales and limits it, from which
// its state is known.
type Object struct {
	Kind string `json:"-"`

	Metadata struct {
		CreationTimestamp          metav1.Time             `json:"creationTimestamp"`
		DeletionTimestamp          *metav1.Time            `json:"deletionTimestamp"`
		DeletionGracePeriodSeconds int64                   `json:"deletionGracePeriodSeconds"`
		Generation                 int64                   `json:"generation"`
		Finalizers                 []string                `json:"finalizers"`
		Annotations                map[string]string       `json:"annotations"`
		Labels                     map[string]string       `json:"labels"`
		OwnerReferences            []metav1.OwnerReference `json:"ownerReferences"`
		ManagedFields              []change.Manager        `json:"managedFields"`
	} `json:"metadata"`
	Spec struct {
		Replicas      *int64          `json:"replicas"`
		Template      json.RawMessage `json:"template"` // see [Object.PodTemplate]
		Paused        bool            `json:"paused"`
		Suspend       bool            `json:"suspend"`
		Parallelism   *int64          `json:"parallelism"` // of a Job
		Unschedulable bool            `json:"unschedulable"`
		Taints        []corev1.Taint  `json:"taints"`

		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				Partition int64 `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`

		Selector *metav1.LabelSelector `json:"selector"`

		ScaleTargetRef struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration     int64       `json:"observedGeneration"`
		Replicas               int64       `json:"replicas"`
		ReadyReplicas          int64       `json:"readyReplicas"`
		UpdatedReplicas        int64       `json:"updatedReplicas"`
		CurrentReplicas        int64       `json:"currentReplicas"` // of a StatefulSet: of its current revision, without those that are deleted
		AvailableReplicas      int64       `json:"availableReplicas"`
		DesiredNumberScheduled int64       `json:"desiredNumberScheduled"`
		CurrentNumberScheduled int64       `json:"currentNumberScheduled"`
		UpdatedNumberScheduled int64       `json:"updatedNumberScheduled"`
		NumberAvailable        int64       `json:"numberAvailable"`
		NumberReady            int64       `json:"numberReady"`
		Active                 int64       `json:"active"` // of a Job; that of a CronJob is a list
		CurrentRevision        string      `json:"currentRevision"`
		UpdateRevision         string      `json:"updateRevision"`
		Conditions             []Condition `json:"conditions"`

		Used map[string]resource.Quantity `json:"used"` // of a ResourceQuota

		CurrentHealthy int64 `json:"currentHealthy"` // of a PodDisruptionBudget
		DesiredHealthy int64 `json:"desiredHealthy"`
	} `json:"status"`
}

// Read decodes an object. Invalid members are empty.
func Read(o *scan.Object) *Object {
	out := &Object{}
	_ = json.Unmarshal([]byte(o.JSON), out)
	out.Kind = o.Kind
	return out
}

// PodTemplate returns the template of a workload's Pods, nil if it has none.
func (o *Object) PodTemplate() *corev1.PodTemplateSpec {
	if len(o.Spec.Template) == 0 {
		return nil
	}
	template := &corev1.PodTemplateSpec{}
	_ = json.Unmarshal(o.Spec.Template, template)
	return template
}

// Condition returns a condition.
func (o *Object) Condition(typ string) (Condition, bool) {
	for _, c := range o.Status.Conditions {
		if c.Type == typ {
			return c, true
		}
	}
	return Condition{}, false
}

// Controller returns the ownerReference of the object's controller, nil if it has none.
func (o *Object) Controller() *metav1.OwnerReference {
	owners := o.Metadata.OwnerReferences
	for i := range owners {
		if owners[i].Controller != nil && *owners[i].Controller {
			return &owners[i]
		}
	}
	return nil
}

// NoExecute returns the taints of a Node that evict Pods, as kubectl writes them.
func (o *Object) NoExecute() (taints []string) {
	for _, one := range o.Spec.Taints {
		if one.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, one.ToString())
		}
	}
	return taints
}

// Taints returns the taints of a Node that evict Pods, without those that follow from its conditions.
func (o *Object) Taints() []string {
	return slices.DeleteFunc(o.NoExecute(), func(taint string) bool {
		return strings.HasPrefix(taint, corev1.TaintNodeNotReady) || strings.HasPrefix(taint, corev1.TaintNodeUnreachable)
	})
}

// A Condition of any object.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`

	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}

// Says returns why a condition has its status.
func (c Condition) Says() string { return change.Because(c.Reason, c.Message) }

// Brief returns why a condition has its status, for a title.
func (c Condition) Brief() string { return change.Concise(c.Reason, c.Message) }
