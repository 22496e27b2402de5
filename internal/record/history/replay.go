// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

const (
	// minReadEvents and maxReadEvents limit how many events are read at a time.
	// The versions of an object are neighbors on disk, those of one moment are
	// not: the more events are read together, the fewer blocks are read more
	// than once.
	minReadEvents, maxReadEvents = 1024, 512 << 10
	// maxEventBytes limits, approximately, what all readers of events hold together
	// (T10): values, previous objects, and events built ahead.
	maxEventBytes = 320 << 20
	// maxReplayBytes limits what one of them holds, approximately.
	maxReplayBytes = 160 << 20
	// minBudgetEvents is how many events are read when the budget has no room
	// for more.
	minBudgetEvents = 64
	// buildEvents is how many events are built at a time from the values read.
	buildEvents = 1024
	// defaultEventSize is the assumed size of an event until sizes are known.
	defaultEventSize = 8 << 10
	// stepOverhead, nameOverhead and objectOverhead estimate the memory of a step without
	// its value, of an object's name, and of an object without its text.
	stepOverhead, nameOverhead, objectOverhead = 40, 128, 448
)

// A replay reads events in the order of their RVs from versions that are sorted
// by object. It reads many events at a time. First it reads their values, which
// are small since most are deltas; each processor does so for a part of the
// objects. Then it builds the events, in order, from the objects before them.
type replay struct {
	st      *Stream
	n       int   // events to read at a time, if the budget allows
	fits    int   // events that the budget allows
	size    int64 // estimated bytes of an event
	held    int64 // bytes taken from the budget
	kept    int64 // of that, the cached objects
	index   map[kube.Key]uint32
	objects []replayed
	steps   []step
	active  []uint32 // the objects of the steps, sorted
	parts   []partition
}

// A step becomes an event: first it has a log entry, then a value. It has no pointers,
// which the garbage collector would follow.
type step struct {
	rv               uint64
	object           uint32 // in replay.objects
	next             uint32 // the next step of the object; 0 for none
	chunk, from, len uint32 // of the value, in the chunks of the object's partition
}

// A replayed is an object that a replay has met.
type replayed struct {
	key         kube.Key
	prev        objectText // as it is before the next event; zero if it is not known, or does not exist
	first, last uint32     // steps
	n           uint32     // number of steps
	part        int
	added       bool // the first step adds it
}

// A partition is a part of the objects, which one goroutine reads and builds.
type partition struct {
	st      *Stream
	r       versionReader
	builder builder
	active  []uint32
	chunks  [][]byte // with values
	bytes   int      // of values
}

// reserve takes budget for the next events. There are at most rvs of them.
func (p *replay) reserve(rvs uint64) {
	b := p.st.s.readBudget
	all := min(int64(min(uint64(p.n), max(rvs, 1)))*p.size, max(maxReplayBytes-p.held, minBudgetEvents*p.size))
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
	p.index, p.objects, p.kept = map[kube.Key]uint32{}, nil, 0
}

// read reads the next events above from, and returns the RV of the last.
func (p *replay) read(from, to uint64) (next uint64, more bool, err error) {
	if err := p.st.s.acquire(); err != nil {
		return 0, false, err
	}
	defer p.st.s.release()
	p.steps, p.active = p.steps[:0], p.active[:0]
	err = p.st.scanLog(from, to, func(key []byte, rv uint64, v version) bool {
		// Events at one RV stay together, since the next read begins above it.
		if more = len(p.steps) >= min(p.n, p.fits) && rv != p.steps[len(p.steps)-1].rv; !more {
			p.addStep(key, rv, v.typ)
		}
		return !more
	})
	if err != nil || len(p.steps) == 0 {
		return 0, false, cmp.Or(err, p.st.retained(from))
	}
	p.divide()
	errs := make([]error, len(p.parts))
	p.parallel(func(i int) { errs[i] = p.parts[i].read(p) })
	p.settle(p.memory())
	// Checked after reading, because each partition opened its own iterator.
	if err := p.st.retained(from); err != nil {
		return 0, false, err
	}
	return p.steps[len(p.steps)-1].rv, more, cmp.Or(errs...)
}

// addStep adds an event of the log.
func (p *replay) addStep(key []byte, rv uint64, typ kube.EventType) {
	at := uint32(len(p.steps))
	i, ok := p.index[kube.Key(key)]
	if !ok {
		i = uint32(len(p.objects))
		name := kube.Key(key) // a copy
		p.objects, p.index[name] = append(p.objects, replayed{key: name}), i
	}
	p.steps = append(p.steps, step{rv: rv, object: i})
	o := &p.objects[i]
	if o.n == 0 {
		p.active = append(p.active, i)
		o.first, o.added = at, typ == kube.Added
	} else {
		p.steps[o.last].next = at
	}
	o.last = at
	o.n++
}

// divide gives each partition about the same number of steps.
func (p *replay) divide() {
	slices.SortFunc(p.active, func(a, b uint32) int { return cmp.Compare(p.objects[a].key, p.objects[b].key) })
	if p.parts == nil {
		p.parts = make([]partition, runtime.GOMAXPROCS(0))
		for i := range p.parts {
			p.parts[i].st, p.parts[i].builder.columns = p.st, p.st.columnsText
		}
	}
	begin, steps := 0, 0
	for part := range p.parts {
		end := begin
		for ; end < len(p.active) && (part == len(p.parts)-1 || steps*len(p.parts) < len(p.steps)*(part+1)); end++ {
			o := &p.objects[p.active[end]]
			o.part = part
			steps += int(o.n)
		}
		p.parts[part].active = p.active[begin:end]
		begin = end
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
func (p *partition) read(all *replay) (err error) {
	if err := p.r.open(p.st); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, p.r.close()) }()
	p.chunks, p.bytes = nil, 0
	var key []byte
	for _, i := range p.active {
		o := &all.objects[i]
		at := o.first
		if o.prev.o == nil && !o.added {
			if err := p.readPrevious(o, all.steps[at].rv); err != nil {
				return err
			}
		}
		key = appendVersionKey(key[:0], p.st.id, o.key, all.steps[at].rv)
		p.r.it.SeekGE(key)
		for ; o.n > 0; o.n-- {
			s := &all.steps[at]
			binary.BigEndian.PutUint64(key[len(key)-8:], s.rv)
			if !p.r.it.Valid() || !bytes.Equal(p.r.it.Key(), key) {
				return cmp.Or(damage(p.r.it.Error()), corrupt("%s at %d is in the log but has no version", o.key, s.rv))
			}
			value, err := p.r.it.ValueAndErr()
			if err != nil {
				return damage(err)
			}
			p.keep(s, value)
			at = s.next
			p.r.it.Next()
		}
	}
	return nil
}

// chunkSize is how much memory for values is allocated at a time.
const chunkSize = 256 << 10

// keep copies a value, which the iterator owns.
func (p *partition) keep(s *step, value []byte) {
	p.bytes += len(value)
	last := len(p.chunks) - 1
	if last < 0 || len(p.chunks[last])+len(value) > cap(p.chunks[last]) {
		p.chunks = append(p.chunks, make([]byte, 0, max(chunkSize, len(value))))
		last++
	}
	c := &p.chunks[last]
	s.chunk, s.from, s.len = uint32(last), uint32(len(*c)), uint32(len(value))
	*c = append(*c, value...)
}

// value returns the value of a step.
func (p *partition) value(s *step) []byte { return p.chunks[s.chunk][s.from:][:s.len] }

// readPrevious reads the object before a step.
func (p *partition) readPrevious(o *replayed, rv uint64) error {
	var err error
	o.prev, err = p.r.get(o.key, rv-1)
	return err
}

// build builds the events of the partition among some steps.
func (p *partition) build(all *replay, self int, steps []step, events []Event) error {
	for i := range steps {
		s := &steps[i]
		o := &all.objects[s.object]
		if o.part != self {
			continue
		}
		v, err := parseVersion(p.value(s), s.rv)
		if err != nil {
			return err
		}
		next, err := p.builder.make(o.prev, o.key, s.rv, v)
		if err != nil {
			return err
		}
		events[i] = Event{Type: v.typ, Object: next.o, Prev: o.prev.o, Inferred: v.inferred, At: v.at}
		if o.prev = next; v.typ == kube.Deleted {
			o.prev = objectText{}
		}
	}
	return nil
}

// emit builds the events of what was read, and calls f for each until f returns
// false. While f handles some events, the next ones are being built.
func (p *replay) emit(ctx context.Context, f func(Event) bool) (stopped bool, err error) {
	errs := make([]error, len(p.parts))
	begin := func(steps []step, events []Event) (wait func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.parallel(func(i int) { errs[i] = p.parts[i].build(p, i, steps, events) })
		}()
		return func() { <-done }
	}
	rest := p.steps
	take := func() (steps []step) {
		steps, rest = rest[:min(len(rest), buildEvents)], rest[min(len(rest), buildEvents):]
		return steps
	}
	steps := take()
	events, ahead := make([]Event, buildEvents), make([]Event, buildEvents)
	wait := begin(steps, events)
	for len(steps) > 0 {
		wait()
		if err := cmp.Or(cmp.Or(errs...), context.Cause(ctx)); err != nil {
			return false, err
		}
		next := take()
		wait = begin(next, ahead)
		for i := range steps {
			e := events[i]
			if events[i] = (Event{}); !f(e) {
				wait()
				return true, nil
			}
		}
		steps, events, ahead = next, ahead, events
	}
	wait()
	return false, nil
}

// memory estimates what the replay holds before it has yielded what it read.
func (p *replay) memory() int64 {
	objects := p.objectBytes()
	used := objects + int64(len(p.steps))*stepOverhead
	for i := range p.parts {
		used += int64(p.parts[i].bytes)
	}
	if made := int64(min(len(p.steps), 2*buildEvents)); len(p.objects) > 0 {
		used += made * (objects / int64(len(p.objects)))
	}
	return used
}

// objectBytes estimates the memory of the cached objects.
func (p *replay) objectBytes() (n int64) {
	for i := range p.objects {
		n += int64(len(p.objects[i].key)) + nameOverhead
		if text := p.objects[i].prev.text; text != "" {
			n += int64(len(text)) + objectOverhead
		}
	}
	return n
}

// adapt chooses how many events to read next: as many as the budget allows, but
// few for a slow caller.
func (p *replay) adapt(busy, all time.Duration) {
	if all > 8*busy {
		p.n /= 4
	} else {
		p.n *= 8
	}
	p.n = min(max(p.n, minReadEvents), maxReadEvents)
	// What an event takes: its value, and the object if it is a new one.
	was := p.kept
	p.kept = p.objectBytes()
	taken := max(p.kept-was, 0)
	for i := range p.parts {
		taken += int64(p.parts[i].bytes)
	}
	if n := int64(len(p.steps)); n > 0 {
		p.size = max(taken/n+stepOverhead, 1<<7)
	}
	p.steps = nil // they are not counted while the next ones are awaited
	for i := range p.parts {
		p.parts[i].chunks = nil
	}
	if p.kept > maxReplayBytes/8*7 || p.kept > p.st.s.readBudget.Share() {
		p.dropObjects()
	}
	p.settle(p.kept)
}
