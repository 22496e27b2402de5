// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package findings_test

import (
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/explain/findings"
)

// BenchmarkHealthy adds a healthy Pod of the usual size: most objects of a large cluster.
func BenchmarkHealthy(b *testing.B) {
	pod := objects(b, `
kind: Pod
key: shop/web
owner: ReplicaSet/web-1
metadata: {annotations: {filler: "`+strings.Repeat("x ", 1500)+`"}}
spec: {nodeName: n1, containers: [{name: main}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: main, ready: true, state: {running: {}}}]}`)[0]
	s := &findings.State{At: now}
	b.SetBytes(int64(len(pod.JSON)))
	for b.Loop() {
		s.Add(resourceOf["Pod"], pod)
	}
	if s.Suspects() != 0 {
		b.Fatal("it was kept")
	}
}
