// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/history/delta"
)

const (
	// minReadEvents and maxReadEvents limit how many events are read at a time.
	// The versions of an object are neighbors on disk, those of one moment are
	// not: the more events are read together, the fewer blocks are read more
	// than once.
	minReadEvents, maxReadEvents = 1024, 64 << 10
	// maxEventBytes limits, approximately, what all readers of events hold together
	// (T10): values, previous objects, and events built ahead.
	maxEventBytes = 320 << 20
	// maxReplayBytes limits what they may take, approximately, with their
	// objects.
	maxReplayBytes = 160 << 20
	// minBudgetEvents is how many events are read when the budget has no room
	// for more.
	minBudgetEvents = 64
	// buildEvents is how many events are built at a time from the values read.
	buildEvents = 1024
	// defaultEventSize is the assumed size of an event until sizes are known.
	defaultEventSize = 8 << 10
)

// A replay reads events in the order of their RVs from versions that are sorted
// by object. It reads some thousands of events at a time. First it reads their
// values, which are small since most are deltas; one goroutine does so for each
// partition of the key space. Then it builds the events, in order, from the
// objects before them.
type replay struct {
	st     *Stream
	n      int   // events to read at a time, if the budget allows
	fits   int   // events that the budget allows
	size   int64 // estimated bytes of an event
	held   int64 // bytes taken from the budget
	bounds []kube.Key
	parts  []*partition
	steps  []step
}

// A step becomes an event: first it has a log entry, then a value, then the event.
type step struct {
	key   kube.Key
	rv    uint64
	part  int
	value version
	event Event
}

// A partition is a part of the key space.
type partition struct {
	r       versionReader
	steps   []*step
	objects map[kube.Key]objectText // the objects as they are before the next event
	bytes   int                     // held by the partition
}

// An objectText is an object and its text.
type objectText struct {
	o    *scan.Object
	text string
}

// reserve takes budget for the next events. There are at most rvs of them.
func (p *replay) reserve(rvs uint64) {
	b := p.st.s.readBudget
	all := min(int64(min(uint64(p.n), max(rvs, 1)))*p.size, maxReplayBytes)
	least, got := min(all, minBudgetEvents*p.size), int64(0)
	if want := min(all, b.Share()-p.held); want >= least {
		got = b.Take(least, want, false)
	}
	if got == 0 { // objects are kept for speed only
		p.dropObjects()
		p.settle(0)
		got = b.Take(least, max(least, min(all, b.Share())), true)
	}
	p.held += got
	p.fits = int(max(got/p.size, 1))
}

// settle sets what the replay has taken from the budget.
func (p *replay) settle(now int64) {
	p.st.s.readBudget.Settle(p.held, now)
	p.held = now
}

// end returns everything to the budget.
func (p *replay) end() {
	p.settle(0)
	p.st.s.readBudget.Leave()
}

// dropObjects drops the cached objects before the next events.
func (p *replay) dropObjects() {
	for _, part := range p.parts {
		clear(part.objects)
	}
}

// read reads the next events above from, and returns the RV of the last.
func (p *replay) read(from, to uint64) (next uint64, more bool, err error) {
	if err := p.st.s.acquire(); err != nil {
		return 0, false, err
	}
	defer p.st.s.release()
	p.steps = p.steps[:0]
	err = p.st.scanLog(from, to, func(key []byte, rv uint64, _ version) bool {
		// Events at one RV stay together, since the next read begins above it.
		if more = len(p.steps) >= min(p.n, p.fits) && rv != p.steps[len(p.steps)-1].rv; !more {
			p.steps = append(p.steps, step{key: kube.Key(key), rv: rv})
		}
		return !more
	})
	if err != nil || len(p.steps) == 0 {
		return 0, false, cmp.Or(err, p.st.retained(from))
	}
	p.divide()
	errs := make([]error, len(p.parts))
	p.parallel(func(i int) { errs[i] = p.parts[i].read(p.st) })
	p.settle(p.memory())
	// Checked after reading, because each partition opened its own iterator.
	if err := p.st.retained(from); err != nil {
		return 0, false, err
	}
	return p.steps[len(p.steps)-1].rv, more, cmp.Or(errs...)
}

// divide assigns the steps to partitions.
func (p *replay) divide() {
	if p.parts == nil || p.n <= minReadEvents {
		keys := make([]kube.Key, len(p.steps))
		for i := range p.steps {
			keys[i] = p.steps[i].key
		}
		slices.Sort(keys)
		n := runtime.GOMAXPROCS(0)
		p.parts, p.bounds = nil, nil
		for i := range n {
			p.parts = append(p.parts, &partition{objects: map[kube.Key]objectText{}})
			if i > 0 {
				p.bounds = append(p.bounds, keys[len(keys)*i/n])
			}
		}
	}
	for _, part := range p.parts {
		part.steps = part.steps[:0]
	}
	for i := range p.steps {
		s := &p.steps[i]
		for s.part < len(p.bounds) && s.key >= p.bounds[s.part] {
			s.part++
		}
		p.parts[s.part].steps = append(p.parts[s.part].steps, s)
	}
}

// parallel calls f for each partition concurrently.
func (p *replay) parallel(f func(i int)) {
	var wg sync.WaitGroup
	for i := range p.parts {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// read reads the values of the partition's steps, and the objects before them.
func (p *partition) read(st *Stream) (err error) {
	if err := p.r.open(st); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, p.r.close()) }()
	steps := slices.Clone(p.steps)
	slices.SortFunc(steps, func(a, b *step) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.rv, b.rv)) })
	p.bytes = 0
	for i, s := range steps {
		if i == 0 || s.key != steps[i-1].key {
			if err := p.readPrevious(s); err != nil {
				return err
			}
			p.r.it.SeekGE(appendVersionKey(nil, st.id, s.key, s.rv))
		} else {
			p.r.it.Next()
		}
		if !p.r.it.Valid() {
			return cmp.Or(damage(p.r.it.Error()), corrupt("%s at %d is in the log but has no version", s.key, s.rv))
		}
		key, rv, v, err := p.r.current()
		if err != nil {
			return err
		}
		if key != s.key || rv != s.rv {
			return corrupt("%s at %d is in the log but has no version", s.key, s.rv)
		}
		v.text = append(make([]byte, 0, len(v.text)), v.text...) // the iterator owns the bytes
		s.value = v
		p.bytes += len(v.text)
	}
	for _, h := range p.objects {
		p.bytes += len(h.text)
	}
	return nil
}

// readPrevious reads the object before a step, unless the partition has it.
func (p *partition) readPrevious(s *step) error {
	if _, ok := p.objects[s.key]; ok {
		return nil
	}
	o, err := p.r.get(s.key, s.rv-1)
	if err != nil || o == nil {
		return err
	}
	p.objects[s.key] = objectText{o, string(p.r.text)}
	return nil
}

// build builds the events of the partition's steps.
func (p *partition) build(steps []step, self int, columns func(uint64) (string, error)) error {
	for i := range steps {
		s := &steps[i]
		if s.part != self {
			continue
		}
		prev, text := p.objects[s.key], ""
		switch v := &s.value; {
		case !v.delta:
			text = viewOf(v.text) // the step owns the bytes
		case prev.o == nil || prev.o.RV != v.base:
			return corruptBase(s.key, s.rv, v.base)
		default:
			next, err := delta.Apply(make([]byte, 0, len(prev.text)+len(v.text)), prev.text, v.text)
			if err != nil {
				return corrupt("%s at %d: %v", s.key, s.rv, err)
			}
			text = viewOf(next)
		}
		o, err := parseText(text, columns)
		if err != nil {
			return err
		}
		s.event = Event{Type: s.value.typ, Object: o, Prev: prev.o, Inferred: s.value.inferred, At: s.value.at}
		if s.value.text = nil; s.value.typ == kube.Deleted {
			delete(p.objects, s.key)
		} else {
			p.objects[s.key] = objectText{o, text}
		}
	}
	return nil
}

// emit builds the events of what was read, and calls f for each until f returns
// false. While f handles some events, the next ones are being built.
func (p *replay) emit(ctx context.Context, f func(Event) bool) (stopped bool, err error) {
	errs := make([]error, len(p.parts))
	begin := func(steps []step) (wait func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.parallel(func(i int) { errs[i] = p.parts[i].build(steps, i, p.st.columnsText) })
		}()
		return func() { <-done }
	}
	rest := p.steps
	take := func() (steps []step) {
		steps, rest = rest[:min(len(rest), buildEvents)], rest[min(len(rest), buildEvents):]
		return steps
	}
	steps := take()
	wait := begin(steps)
	for len(steps) > 0 {
		wait()
		if err := cmp.Or(cmp.Or(errs...), context.Cause(ctx)); err != nil {
			return false, err
		}
		next := take()
		wait = begin(next)
		for i := range steps {
			e := steps[i].event
			if steps[i] = (step{}); !f(e) {
				wait()
				return true, nil
			}
		}
		steps = next
	}
	wait()
	return false, nil
}

// memory estimates what the replay holds before it has yielded what it read.
func (p *replay) memory() int64 {
	var used, texts, objects int
	for _, part := range p.parts {
		used += part.bytes
		for _, h := range part.objects {
			texts += len(h.text)
		}
		objects += len(part.objects)
	}
	if made := min(len(p.steps), 2*buildEvents); objects > 0 {
		used += made * (texts / objects)
	}
	return int64(used)
}

// adapt chooses how many events to read next: as many as the budget allows, but
// few for a slow caller.
func (p *replay) adapt(busy, all time.Duration) {
	used := int64(1)
	for _, part := range p.parts {
		used += int64(part.bytes)
	}
	fits := int(int64(p.n) * maxReplayBytes / used)
	if all > 8*busy {
		p.n /= 4
	} else {
		p.n *= 4
	}
	p.n = min(max(min(p.n, fits), minReadEvents), maxReadEvents)
	if n := int64(len(p.steps)); n > 0 {
		p.size = max(used/n, 1<<8)
	}
	if used > maxReplayBytes || used > p.st.s.readBudget.Share() {
		p.dropObjects()
		used = 0
	}
	p.settle(used)
}
