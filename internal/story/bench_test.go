// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"fmt"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/story"
)

// BenchmarkTell writes the story of a Deployment whose Pods crash again and again, as large as
// the gateway's limits allow.
func BenchmarkTell(b *testing.B) {
	l := newLog(b)
	l.initial(deployment(1, 2, "r/web:1.0", "kubectl-create", "1", done(1, 2)))
	l.initial(replicaSet("a", "r/web:1.0", "replicas: 2"))
	l.put(10, deployment(2, 2, "r/web:1.1", "kubectl-set", "1", done(1, 2)))
	l.put(10.1, replicaSet("b", "r/web:1.1", ""))
	l.initial(node("True", "", "", ""))
	for i := range 500 {
		name := fmt.Sprintf("web-b-x%d", i)
		for j := range 30 {
			l.put(float64(20+j*10), pod(name, "web-b", "", "", []string{running, crashed, backOff}[j%3]))
		}
		for j := range 10 {
			l.event(float64(20+j*30), fmt.Sprintf("%s.%d", name, j), "Warning", "BackOff", "Back-off restarting failed container web in pod "+name, "Pod", name)
		}
	}
	in := l.input("Deployment/web", 600)
	for b.Loop() {
		story.Tell(in)
	}
}
