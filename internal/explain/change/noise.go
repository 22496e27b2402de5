// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"maps"
	"slices"
)

// noise has the values that were removed from an object, by kind.
type noise map[string][]any

// Kinds of noise.
const (
	noiseManaged    = "managedFields"
	noiseVersion    = "resourceVersion"
	noiseGeneration = "generation"
	noiseHeartbeat  = "heartbeat"
	noiseLease      = "lease renewal"
	noiseEvent      = "event count"
	noiseProbe      = "probe time"
	noiseMetrics    = "metrics"
)

// quietAnnotations are annotations that controllers rewrite all the time, and the generation that
// the API server writes into one.
var quietAnnotations = map[string]string{
	"control-plane.alpha.kubernetes.io/leader":         noiseLease,
	"endpoints.kubernetes.io/last-change-trigger-time": noiseHeartbeat,
	"deprecated.daemonset.template.generation":         noiseGeneration,
}

// quietConditions are the members of a condition that only record the last
// check.
var quietConditions = map[string]string{
	"lastHeartbeatTime":  noiseHeartbeat,
	"lastProbeTime":      noiseProbe,
	"lastUpdateTime":     noiseProbe,
	"observedGeneration": noiseGeneration,
}

// In the order in which they are removed.
var (
	annotationNames = slices.Sorted(maps.Keys(quietAnnotations))
	conditionNames  = slices.Sorted(maps.Keys(quietConditions))
)

// quietMembers are the noisy members of a kind.
var quietMembers = map[string][]struct {
	noise string
	path  []string
}{
	"Lease": {{noiseLease, []string{"spec", "renewTime"}}},
	"HorizontalPodAutoscaler": {
		{noiseMetrics, []string{"status", "currentMetrics"}},
		{noiseMetrics, []string{"status", "currentCPUUtilizationPercentage"}},
	},
	"Event": {
		{noiseEvent, []string{"count"}},
		{noiseEvent, []string{"lastTimestamp"}},
		{noiseEvent, []string{"series"}},
		{noiseEvent, []string{"deprecatedCount"}},
		{noiseEvent, []string{"deprecatedLastTimestamp"}},
	},
}

// quiet removes the noise from an object and returns it.
func quiet(tree map[string]any) noise {
	n := noise{}
	n.take(tree, noiseManaged, "metadata", "managedFields")
	n.take(tree, noiseVersion, "metadata", "resourceVersion")
	n.take(tree, noiseGeneration, "metadata", "generation")
	n.take(tree, noiseGeneration, "status", "observedGeneration")
	for _, name := range annotationNames {
		n.take(tree, quietAnnotations[name], "metadata", "annotations", name)
	}
	for _, c := range elements(tree, "status", "conditions") {
		condition, _ := c.(map[string]any)
		for _, name := range conditionNames {
			n.take(condition, quietConditions[name], name)
		}
	}
	for _, q := range quietMembers[text(tree["kind"])] {
		n.take(tree, q.noise, q.path...)
	}
	return n
}

// take removes the value at a path, and then empty parents: the other version
// may not have them.
func (n noise) take(from map[string]any, kind string, path ...string) {
	name, last := path[0], len(path) == 1
	value, ok := from[name]
	if !ok {
		return
	}
	if last {
		n[kind] = append(n[kind], value)
		delete(from, name)
		return
	}
	if holder, ok := value.(map[string]any); ok && len(holder) > 0 {
		if n.take(holder, kind, path[1:]...); len(holder) == 0 {
			delete(from, name)
		}
	}
}

// differing returns the kinds of noise in which two objects differ.
// resourceVersion differs in every change, so it counts only if nothing else
// does.
func differing(before, after noise) []string {
	kinds := maps.Clone(before)
	maps.Copy(kinds, after)
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if kind != noiseVersion && !slices.EqualFunc(before[kind], after[kind], equal) {
			out = append(out, kind)
		}
	}
	if out == nil && !slices.EqualFunc(before[noiseVersion], after[noiseVersion], equal) {
		out = []string{noiseVersion}
	}
	return out
}
