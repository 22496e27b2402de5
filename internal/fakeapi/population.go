// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchkeeper/watchkeeper/internal/fakeapi/synthetic"
)

// A Population is the objects of package synthetic, for benchmarks. Every object is
// encoded once: serving it costs a copy, into which the resourceVersion and the change
// are written, and the system calls. Objects do not change by themselves: see
// [Server.Change] and [Server.ChangeAtRate].
type Population struct {
	Pods int // 0 means no population
	// Nodes is the number of Nodes that the Pods run on. With 0, Pods run on 1,000
	// Nodes that the server does not have.
	Nodes int
	// Churn makes a changed Pod differ in more than its resourceVersion, in JSON
	// and Tables: in times of its status and of managedFields, and in the restart
	// count of its container: in one of ten changes, or with Nodes in each.
	Churn bool
	// Formats are encoded by New, the others on the first request.
	Formats []Format
}

// population is the state for changes of the objects. The server's mu guards it.
type population struct {
	of     *collection // Pods
	pods   []*slot     // by index
	random *rand.Rand
	marker int // the Pod that changes when the next watch is live, or -1
}

// resources adds the resources that a population needs.
func (p Population) resources(all []Resource) []Resource {
	all = slices.Clone(all)
	add := func(r Resource) {
		i := slices.IndexFunc(all, func(other Resource) bool { return other.FullName() == r.FullName() })
		if i < 0 {
			i, all = len(all), append(all, r)
		}
		all[i].Columns, all[i].Cells = synthetic.Columns, synthetic.Cells
	}
	add(Pods)
	if p.Nodes > 0 {
		add(Nodes)
	}
	return all
}

// populate fills the empty server. All resourceVersions have ten digits, and the
// history does not contain the creations.
func (s *Server) populate(p Population) {
	s.rv = synthetic.FirstRV - 1
	s.population = &population{of: s.collection(Pods.FullName()), random: rand.New(rand.NewPCG(1, 1)), marker: -1}
	s.population.pods = s.fill(p, Pods, p.Pods, func(i int) maker { return &syntheticPod{i, p} })
	if p.Nodes > 0 {
		s.fill(p, Nodes, p.Nodes, func(i int) maker { return syntheticNode(i) })
	}
	s.rv++
	for _, c := range s.collections {
		c.compacted, c.progress = s.rv, s.rv
	}
}

func (s *Server) fill(p Population, r Resource, n int, makerOf func(int) maker) []*slot {
	c := s.collection(r.FullName())
	all := make([]*slot, n)
	for i := range all {
		s.rv++
		m := makerOf(i)
		a := accessor(m.make())
		o := &object{namespace: a.GetNamespace(), name: a.GetName(), maker: m}
		o.key = prefix(o.namespace) + o.name
		for _, f := range p.Formats {
			if _, err := o.encoding(c, f, s.rv); err != nil {
				panic("fakeapi: " + err.Error())
			}
		}
		all[i] = &slot{key: o.key, version: version{o, s.rv}}
	}
	c.objects = slices.SortedFunc(slices.Values(all), func(a, b *slot) int { return strings.Compare(a.key, b.key) })
	return all
}

type syntheticPod struct {
	i int
	p Population
}

func (m *syntheticPod) make() runtime.Object {
	pod := synthetic.Pod(m.i)
	if m.p.Nodes > 0 {
		pod.Spec.NodeName = synthetic.NodeName(m.i % m.p.Nodes)
	}
	return pod
}

func (m *syntheticPod) changed(f Format, e *encoded) {
	if m.p.Churn && (f == JSON || f == Table) {
		churn := synthetic.FindChurn(e.body, m.p.Nodes > 0)
		e.churn = &churn
	}
}

type syntheticNode int

func (m syntheticNode) make() runtime.Object     { return synthetic.Node(int(m)) }
func (m syntheticNode) changed(Format, *encoded) {}

// A Mark identifies a change. A client that has received it has every earlier change.
type Mark struct {
	Namespace, Name, ResourceVersion string
}

// Change changes n random Pods of the population and returns the last change.
// The Pods must not have been deleted.
func (s *Server) Change(n int) (last Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		last = s.changeLocked(s.population.random.IntN(len(s.population.pods)))
	}
	s.wakeLocked()
	return last
}

// ChangePod changes the i-th Pod of the population.
func (s *Server) ChangePod(i int) Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wakeLocked()
	return s.changeLocked(i)
}

func (s *Server) changeLocked(i int) Mark {
	s.rv++
	pod := s.population.pods[i]
	s.population.of.replace(pod, pod.object, s.rv)
	return markOf(pod, s.rv)
}

func markOf(pod *slot, rv uint64) Mark {
	return Mark{pod.namespace, pod.name, strconv.FormatUint(rv, 10)}
}

// paceEvery is how often ChangeAtRate makes changes.
const paceEvery = time.Millisecond

// ChangeAtRate makes n changes, perSecond of them in a second, and returns the last.
// After a delay it catches up.
func (s *Server) ChangeAtRate(ctx context.Context, n int, perSecond float64) (last Mark, err error) {
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	for start, done := time.Now(), 0; done < n; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last, ctx.Err()
		}
		if due := min(n, int(perSecond*time.Since(start).Seconds())); due > done {
			last = s.Change(due - done)
			done = due
		}
	}
	return last, nil
}

// ExpireWithMark is [Server.Expire], and changes a Pod once the next watch of Pods has
// sent its initial events: a client that has received the returned change has relisted.
func (s *Server) ExpireWithMark() Mark {
	rv := s.Expire()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.population.marker = s.population.random.IntN(len(s.population.pods))
	return markOf(s.population.pods[s.population.marker], rv+1)
}

// live is called when a watch of a collection has sent its initial events.
func (s *Server) live(c *collection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.population; p != nil && p.marker >= 0 && c == p.of {
		s.changeLocked(p.marker)
		p.marker = -1
		s.wakeLocked()
	}
}
