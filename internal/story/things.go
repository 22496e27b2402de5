// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/api"
	"github.com/watchkeeper/watchkeeper/internal/change"
)

// A thing is one object, from its creation or the begin of the span to its deletion. Another
// object of the same name is another thing.
type thing struct {
	resource kube.Resource
	key      kube.Key
	uid      string
	kind     string
	states   []*state
	// gone is when it was deleted; zero if it was not.
	gone time.Time
	last *entry // of its deletion, if gone
}

// A state is what a thing was from a time on.
type state struct {
	thing   *thing
	at      time.Time
	o       *scan.Object
	initial bool   // at the begin of the span
	entry   *entry // nil if it differs from the state before in noise only, or is initial

	light *light
	pod   *corev1.Pod
}

// A light has the members that rules read of objects of any kind.
type light struct {
	Metadata struct {
		CreationTimestamp metav1.Time             `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
		Generation        int64                   `json:"generation"`
		Finalizers        []string                `json:"finalizers"`
		Annotations       map[string]string       `json:"annotations"`
		Labels            map[string]string       `json:"labels"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		Replicas      *int64          `json:"replicas"`
		Template      json.RawMessage `json:"template"`
		Paused        bool            `json:"paused"`
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
		AvailableReplicas      int64       `json:"availableReplicas"`
		DesiredNumberScheduled int64       `json:"desiredNumberScheduled"`
		CurrentNumberScheduled int64       `json:"currentNumberScheduled"`
		UpdatedNumberScheduled int64       `json:"updatedNumberScheduled"`
		NumberAvailable        int64       `json:"numberAvailable"`
		NumberReady            int64       `json:"numberReady"`
		Active                 int64       `json:"active"` // of a Job
		CurrentRevision        string      `json:"currentRevision"`
		UpdateRevision         string      `json:"updateRevision"`
		Conditions             []condition `json:"conditions"`

		Used map[string]resource.Quantity `json:"used"` // of a ResourceQuota

		CurrentHealthy int64 `json:"currentHealthy"` // of a PodDisruptionBudget
		DesiredHealthy int64 `json:"desiredHealthy"`
	} `json:"status"`
}

// A condition of any object.
type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`

	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}

// says returns why a condition has its status.
func (c condition) says() string { return change.Because(c.Reason, c.Message) }

// brief returns why a condition has its status, for a title.
func (c condition) brief() string { return change.Concise(c.Reason, c.Message) }

// look returns the members of a state that rules read. Invalid members are empty.
func (s *state) look() *light {
	if s.light == nil {
		s.light = &light{}
		_ = json.Unmarshal([]byte(s.o.JSON), s.light)
	}
	return s.light
}

// asPod returns a state of a Pod.
func (s *state) asPod() *corev1.Pod {
	if s.pod == nil {
		s.pod = &corev1.Pod{}
		_ = json.Unmarshal([]byte(s.o.JSON), s.pod)
		change.Align(s.pod, s.at)
	}
	return s.pod
}

// condition returns a condition of a state.
func (s *state) condition(typ string) (condition, bool) {
	for _, c := range s.look().Status.Conditions {
		if c.Type == typ {
			return c, true
		}
	}
	return condition{}, false
}

// cause returns what a field of a state says.
func (s *state) cause(field, text string) api.Cause {
	th := s.thing
	return api.Cause{
		Kind: th.kind, Namespace: th.key.Namespace(), Name: th.key.Name(), Field: field, Text: text,
		Path: th.resource.ObjectPath(th.key), ResourceVersion: kube.FormatRV(s.o.RV),
	}
}

// because returns what a condition of a state says.
func (s *state) because(c condition) api.Cause {
	return s.cause("status.conditions["+c.Type+"]", cmp.Or(c.says(), c.Status))
}

// terminating reports whether deletion was requested.
func (s *state) terminating() bool { return s.look().Metadata.DeletionTimestamp != nil }

// begin returns the time from which a thing is known, and whether it was created then.
func (th *thing) begin() (at time.Time, created bool) {
	return th.states[0].at, !th.states[0].initial
}

// entries returns the entries about a thing.
func (th *thing) entries() (all []*entry) {
	for _, s := range th.states {
		all = append(all, claim(s)...)
	}
	if th.last != nil {
		all = append(all, th.last)
	}
	return all
}

// existed reports whether a thing may have existed at some time of a span.
func (th *thing) existed(from, to time.Time) bool {
	begin := th.states[0].at
	if e := th.states[0].entry; e != nil && !e.NotBefore.IsZero() {
		begin = e.NotBefore
	}
	return !begin.After(to) && (th.gone.IsZero() || !th.gone.Before(from))
}

// at returns the state at a time: the last one that began until then; nil if there was none.
func (th *thing) at(when time.Time) *state {
	if !th.gone.IsZero() && !when.Before(th.gone) {
		return nil
	}
	for _, s := range slices.Backward(th.states) {
		if !s.at.After(when) {
			return s
		}
	}
	return nil
}

// before returns the state before another one.
func (th *thing) before(s *state) *state { return th.states[slices.Index(th.states, s)-1] }

// final returns the last state.
func (th *thing) final() *state { return th.states[len(th.states)-1] }

// controller returns the ownerReference of a thing's controller, nil if it has none.
func (th *thing) controller() *metav1.OwnerReference {
	owners := th.final().look().Metadata.OwnerReferences
	for i := range owners {
		if owners[i].Controller != nil && *owners[i].Controller {
			return &owners[i]
		}
	}
	return nil
}

// controlledBy reports whether an object with a UID controls a thing.
func (th *thing) controlledBy(uid string) bool {
	c := th.controller()
	return c != nil && string(c.UID) == uid
}

// A name names an object. Another object that has the same one later has another UID.
type name struct{ kind, namespace, name, uid string }

func (n name) String() string { return n.kind + " " + n.name }

func (th *thing) named() name { return name{th.kind, th.key.Namespace(), th.key.Name(), th.uid} }

// workload returns what a thing belongs to: for a Pod, its controller, and for a ReplicaSet
// or a Job, the Deployment or CronJob that controls it; otherwise the thing itself.
func (t *teller) workload(th *thing) name {
	at := th.named()
	for range 2 {
		if th == nil || at.kind != "Pod" && at.kind != "ReplicaSet" && at.kind != "Job" {
			break
		}
		c := th.controller()
		if c == nil {
			break
		}
		at = name{c.Kind, th.key.Namespace(), c.Name, string(c.UID)}
		th = t.byUID[string(c.UID)]
	}
	return at
}

// until returns the end of a state: the time of the next one, of the deletion, or the end of
// the span.
func (t *teller) until(th *thing, i int) time.Time {
	switch {
	case i+1 < len(th.states):
		return th.states[i+1].at
	case !th.gone.IsZero():
		return th.gone
	}
	return t.To
}

// ofKind yields the things of a kind.
func (t *teller) ofKind(kinds ...string) (all []*thing) {
	for _, th := range t.things {
		if slices.Contains(kinds, th.kind) {
			all = append(all, th)
		}
	}
	return all
}
