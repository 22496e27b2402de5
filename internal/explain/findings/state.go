// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
	"github.com/watchkeeper/watchkeeper/internal/explain/workload"
)

// A State is the objects of a moment that may be a part of a finding. Of a large cluster
// that is a small part: healthy Pods are left out by the text of their JSON, which is much
// faster than to decode it.
type State struct {
	// At is the moment.
	At time.Time
	// Get returns an object of the moment, nil if there is none or if it is not known. It is
	// asked for the owners of what was found. nil knows of none.
	Get func(resource string, key kube.Key) *scan.Object
	// LastSeen returns the last version of an object that may be deleted, nil if it is not
	// known. It is asked for the Pods that Events are about.
	LastSeen func(resource string, key kube.Key) *scan.Object
	// Observed returns when an object of the moment was observed, zero if it is not known. It
	// is asked for Pods that fail, and workloads that were scaled. nil knows of none.
	Observed func(resource string, key kube.Key) time.Time

	// Deleted returns when a Pod of each controller in a namespace, by its UID, was last deleted in
	// the hour before the moment. It is asked if Pods do not exist that a status has. nil knows of
	// none.
	Deleted func(namespace string) map[string]time.Time

	// Known has until when resources are known that are not known at the moment. Their objects
	// are judged as of then: nothing recovers, or fails, by waiting.
	Known map[string]time.Time

	// AllNodes is set once all Nodes are added, before the Pods.
	AllNodes bool
	// AllPods is set once all Pods are added that the others may control.
	AllPods bool

	pods        []*corev1.Pod
	nodes       []*corev1.Node
	deployments []*appsv1.Deployment
	replicaSets []*appsv1.ReplicaSet
	autoscalers []*autoscalingv2.HorizontalPodAutoscaler
	budgets     []*policyv1.PodDisruptionBudget
	claims      []*corev1.PersistentVolumeClaim
	jobs        []*batchv1.Job
	cronJobs    []*batchv1.CronJob
	slices      []*discoveryv1.EndpointSlice
	services    []*apiService
	terminating []*terminatingObject
	incomplete  []*incomplete
	short       []*incomplete // with fewer ready Pods than they want
	unseen      []*incomplete // whose controllers have not seen their last change
	counted     []counted
	podsOf      map[string]int    // by the UID of the controller
	newestPod   map[string]string // its creationTimestamp, by the same
	events      []*event

	about map[string][]*event // by the UID of the object, once sorted
	// preemptors are the Pods for which others were preempted, by UID; nil as long as only
	// an Event names them.
	preemptors map[string]*scan.Object
	nodeNames  map[string]bool
	onNode     map[string]bool // Nodes whose Pods are all kept
	known      map[Ref]*workload.Object
}

// at returns the moment of the objects of a resource.
func (s *State) at(resource string) time.Time {
	if known, ok := s.Known[resource]; ok {
		return known
	}
	return s.At
}

// Suspects returns how many objects were kept because they may be a part of a finding.
func (s *State) Suspects() int {
	return len(s.pods) + len(s.nodes) + len(s.deployments) + len(s.replicaSets) + len(s.unseen) + len(s.autoscalers) + len(s.budgets) + len(s.claims) +
		len(s.jobs) + len(s.cronJobs) + len(s.slices) + len(s.services) + len(s.terminating) + len(s.incomplete) + len(s.short) + len(s.events)
}

// Order orders resources in the order in which their objects have to be added.
func Order(resources []kube.Resource) {
	slices.SortStableFunc(resources, func(a, b kube.Resource) int { return first(a) - first(b) })
}

// first: which Pods are kept depends on Nodes and Events.
func first(r kube.Resource) int {
	switch r.GroupResource() {
	case "nodes", "events", "events.events.k8s.io":
		return 0
	}
	return 1
}

// Add adds an object.
func (s *State) Add(r kube.Resource, o *scan.Object) {
	terminating := strings.Contains(o.JSON, `"deletionTimestamp"`)
	if terminating {
		s.addTerminating(r, o)
	}
	switch r.GroupResource() {
	case "deployments.apps", "replicasets.apps", "statefulsets.apps", "replicationcontrollers", "daemonsets.apps":
		s.addShort(r, o)
	}
	switch r.GroupResource() {
	case "pods":
		if s.podsOf == nil {
			s.podsOf, s.newestPod = map[string]int{}, map[string]string{}
		}
		controller := ControllerOf(o)
		s.podsOf[controller]++
		if at := scan.Lookup(o.JSON, "metadata", "creationTimestamp"); at > s.newestPod[controller] { // they sort
			s.newestPod[controller] = at
		}
		if _, ok := s.preemptors[o.UID]; ok {
			s.preemptors[o.UID] = o
		}
		if terminating || !s.wellPod(o.JSON) {
			s.addPod(r, o)
		}
	case "nodes":
		if s.nodeNames == nil {
			s.nodeNames = map[string]bool{}
		}
		s.nodeNames[o.Key.Name()] = true
		if node := add(&s.nodes, o); node != nil && (node.Spec.Unschedulable || badNode(node) != nil) {
			if s.onNode == nil {
				s.onNode = map[string]bool{}
			}
			s.onNode[node.Name] = true
		}
	case "deployments.apps":
		s.addUnseen(r, o)
		s.addIncomplete(r, o, "replicas", "replicas")
		if strings.Contains(o.JSON, "ProgressDeadlineExceeded") || strings.Contains(o.JSON, `"ReplicaFailure"`) {
			add(&s.deployments, o)
		}
	case "replicasets.apps":
		if strings.Contains(o.JSON, `"ReplicaFailure"`) {
			add(&s.replicaSets, o)
		}
		s.addUnseen(r, o)
		s.addIncomplete(r, o, "replicas", "replicas")
		s.addCounted(r, o, "replicas")
	case "statefulsets.apps", "replicationcontrollers":
		s.addUnseen(r, o)
		s.addIncomplete(r, o, "replicas", "replicas")
		s.addCounted(r, o, "replicas")
	case "daemonsets.apps":
		s.addUnseen(r, o)
		s.addCounted(r, o, "currentNumberScheduled")
		s.addIncomplete(r, o, "currentNumberScheduled", "desiredNumberScheduled")
	case "horizontalpodautoscalers.autoscaling":
		add(&s.autoscalers, o)
	case "poddisruptionbudgets.policy":
		add(&s.budgets, o)
	case "persistentvolumeclaims":
		add(&s.claims, o)
	case "jobs.batch":
		if strings.Contains(o.JSON, `"Failed"`) || strings.Contains(o.JSON, `"CronJob"`) || !strings.Contains(o.JSON, `"startTime"`) {
			add(&s.jobs, o)
		}
	case "cronjobs.batch":
		add(&s.cronJobs, o)
	case "endpointslices.discovery.k8s.io":
		if strings.Contains(o.JSON, `"ready"`) {
			add(&s.slices, o)
		}
	case "apiservices.apiregistration.k8s.io":
		add(&s.services, o)
	case "events", "events.events.k8s.io":
		s.addEvent(o)
	}
}

// addPod adds a Pod, with times that are not those of a Node whose clock is ahead.
func (s *State) addPod(r kube.Resource, o *scan.Object) {
	pod := add(&s.pods, o)
	if pod == nil {
		return
	}
	change.Align(pod, time.Time{})
	if s.Observed != nil && change.Failing(pod, s.at("pods")) {
		change.Align(pod, s.Observed(r.GroupResource(), o.Key))
	}
}

// add decodes an object and keeps it; nil if its members have other types than they should.
func add[T any](all *[]*T, o *scan.Object) *T {
	v := new(T)
	if json.Unmarshal([]byte(o.JSON), v) != nil {
		return nil
	}
	*all = append(*all, v)
	return v
}

// wellPod reports whether the text of a Pod shows that no rule is about it, unless it is being
// deleted. Texts within an annotation do not match: their quotes are escaped. Without a status
// at its end, it is decoded.
func (s *State) wellPod(text string) bool {
	i := strings.Index(text, `"status":{`)
	if i < 0 {
		return false
	}
	if node := nodeName(text[:i]); s.onNode[node] || s.deleted(node) {
		return false
	}
	status := text[i:]
	if strings.Contains(status, `"phase":"Succeeded"`) {
		return true
	}
	for _, sign := range []string{`"status":"False"`, `"status":"Unknown"`, `"exitCode"`, `"waiting"`, `"DisruptionTarget"`} {
		if strings.Contains(status, sign) {
			return false
		}
	}
	return strings.Contains(status, `"phase":"Running"`)
}

// deleted reports whether a Pod's Node does not exist. That is not known if Pods and Nodes are
// not of the same moment.
func (s *State) deleted(node string) bool {
	return s.AllNodes && node != "" && !s.nodeNames[node] && s.at("pods").Equal(s.at("nodes"))
}

// nodeName returns the Node of a Pod.
func nodeName(text string) string {
	_, rest, ok := strings.Cut(text, `"nodeName":"`)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// get returns the common members of an object; nil if there is none.
func (s *State) get(ref Ref) *workload.Object {
	if l, ok := s.known[ref]; ok {
		return l
	}
	var l *workload.Object
	if s.Get != nil && ref.Resource != "" {
		if o := s.Get(ref.Resource, ref.Key); o != nil {
			l = workload.Read(o)
		}
	}
	if s.known == nil {
		s.known = map[Ref]*workload.Object{}
	}
	s.known[ref] = l
	return l
}

// lastSeen returns the common members of an object that may be deleted; nil if they are not
// known.
func (s *State) lastSeen(ref Ref) *workload.Object {
	if l := s.get(ref); l != nil || s.LastSeen == nil {
		return l
	}
	if o := s.LastSeen(ref.Resource, ref.Key); o != nil {
		s.known[ref] = workload.Read(o)
	}
	return s.known[ref]
}
