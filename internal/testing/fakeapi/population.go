// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
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

// population is the state for changes of the objects.
type population struct {
	pods []Mark // by index, without resourceVersions

	mu     sync.Mutex // guards what follows
	random *rand.Rand
	marker int // the Pod that changes when the next watch is live, or -1
}

// A maker makes an object of a population. The result is not kept: decoded objects take
// several times the memory of their JSON.
type maker interface {
	informertest.Content
	make() runtime.Object
	// rewrite returns the changes of the object in a format; nil for none.
	rewrite(f Format, body []byte) func([]byte, uint64)
}

// resources adds the resources that a population needs.
func (p Population) resources(all []Resource) []Resource {
	all = slices.Clone(all)
	add := func(r Resource) {
		if !slices.ContainsFunc(all, func(other Resource) bool { return other.FullName() == r.FullName() }) {
			all = append(all, r)
		}
	}
	add(Pods)
	if p.Nodes > 0 {
		add(Nodes)
	}
	return all
}

// tableOf returns the table of a resource.
func (p Population) tableOf(r Resource) table {
	if name := r.FullName(); p.Pods > 0 && name == Pods.FullName() || p.Nodes > 0 && name == Nodes.FullName() {
		return table{synthetic.Columns, synthetic.Cells}
	}
	return nameTable
}

// populate fills the empty server. All resourceVersions have ten digits, and the
// history does not contain the creations.
func (s *Server) populate(p Population) {
	s.population = &population{random: rand.New(rand.NewPCG(1, 1)), marker: -1}
	s.population.pods = s.fill(p, Pods, p.Pods, func(i int) maker { return &syntheticPod{i, p} })
	if p.Nodes > 0 {
		s.fill(p, Nodes, p.Nodes, func(i int) maker { return syntheticNode(i) })
	}
	s.Compact(s.Advance(1))
}

func (s *Server) fill(p Population, r Resource, n int, makerOf func(int) maker) []Mark {
	all, names := make([]informertest.Named, n), make([]Mark, n)
	for i := range all {
		m := makerOf(i)
		a := accessor(m.make())
		all[i] = informertest.Named{Namespace: a.GetNamespace(), Name: a.GetName(), Content: m}
		names[i] = Mark{Namespace: a.GetNamespace(), Name: a.GetName()}
	}
	s.Fill(r.FullName(), all)
	for _, f := range p.Formats {
		if err := s.Prepare(r.FullName(), s.formats[r.FullName()][f]); err != nil {
			panic("fakeapi: " + err.Error())
		}
	}
	return names
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

func (m *syntheticPod) Render(rv string) []byte { return render(m, rv) }

func (m *syntheticPod) rewrite(f Format, body []byte) func([]byte, uint64) {
	if !m.p.Churn || f != JSON && f != Table {
		return nil
	}
	churn := synthetic.FindChurn(body, m.p.Nodes > 0)
	return churn.Write
}

type syntheticNode int

func (m syntheticNode) make() runtime.Object                        { return synthetic.Node(int(m)) }
func (m syntheticNode) Render(rv string) []byte                     { return render(m, rv) }
func (m syntheticNode) rewrite(Format, []byte) func([]byte, uint64) { return nil }

func render(m maker, rv string) []byte {
	o := m.make()
	accessor(o).SetResourceVersion(rv)
	return withoutKind(o)
}

// A Mark identifies a change. A client that has received it has every earlier change.
type Mark struct {
	Namespace, Name, ResourceVersion string
}

// Change changes n random Pods of the population and returns the last change.
// The Pods must not have been deleted.
func (s *Server) Change(n int) (last Mark) {
	p := s.population
	p.mu.Lock()
	changed := make([]Mark, n)
	for i := range changed {
		changed[i] = p.pods[p.random.IntN(len(p.pods))]
	}
	p.mu.Unlock()
	return s.touch(changed...)
}

// ChangePod changes the i-th Pod of the population.
func (s *Server) ChangePod(i int) Mark { return s.touch(s.population.pods[i]) }

// touch changes Pods and returns the last change.
func (s *Server) touch(pods ...Mark) (last Mark) {
	keys := make([]string, len(pods))
	for i, pod := range pods {
		keys[i] = pod.Namespace + "/" + pod.Name
	}
	last = pods[len(pods)-1]
	last.ResourceVersion = strconv.FormatUint(s.Touch(Pods.FullName(), keys...), 10)
	return last
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
	p := s.population
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marker = p.random.IntN(len(p.pods))
	mark := p.pods[p.marker]
	mark.ResourceVersion = strconv.FormatUint(rv+1, 10)
	return mark
}

// live is called when a watch has sent its initial events.
func (s *Server) live(r *Request) {
	p := s.population
	if p == nil || r.Resource.FullName() != Pods.FullName() {
		return
	}
	p.mu.Lock()
	marker := p.marker
	p.marker = -1
	p.mu.Unlock()
	if marker >= 0 {
		s.ChangePod(marker)
	}
}
