// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const (
	// fewEvents and manyEvents are how many are read at a time. The versions of an
	// object are neighbours on disk, those of one moment are not: the more are read
	// together, the fewer blocks are read more than once.
	fewEvents, manyEvents = 1024, 64 << 10
	// replayBytes is about how much they may take, with the objects they are of.
	replayBytes = 160 << 20
	// fewestEvents is how many are read where there is no room for more.
	fewestEvents = 64
	// madeAtOnce is how many events are made out of what was read at a time.
	madeAtOnce = 1024
	// usualEvent is how many bytes an event takes before that is known.
	usualEvent = 8 << 10
)

// Events yields the events above from, up to to, in order. An error is the last
// it yields.
func (st *Stream) Events(from, to uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		p := &replay{st: st, n: fewEvents, size: usualEvent}
		st.s.events.enter()
		defer p.end()
		for more := true; more; {
			p.room(to - from)
			began := time.Now()
			next, more2, err := p.read(from, to)
			if err != nil {
				yield(Event{}, err)
				return
			}
			from, more = next, more2
			busy := time.Since(began)
			stopped, err := p.emit(func(e Event) bool { return yield(e, nil) })
			if stopped {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			p.adapt(busy, time.Since(began))
		}
	}
}

// A replay reads events in the order of their RVs, from versions that are in the
// order of their objects. Some thousands at a time: first their values, which are
// small as deltas are, each part of the key space by a goroutine of its own. Then
// the events are made, in their order, from what the objects were before.
type replay struct {
	st     *Stream
	n      int   // how many to read, where there is room
	fits   int   // how many there is room for
	size   int64 // what an event takes, about
	held   int64 // of the budget
	bounds []kube.Key
	parts  []*part
	steps  []step
}

// A step is an event on its way: an entry of the log, then a value, then an
// event.
type step struct {
	key   kube.Key
	rv    uint64
	part  int
	value version
	event Event
}

// A part is some of the key space.
type part struct {
	r     reader
	steps []*step
	now   map[kube.Key]held // what objects are before the next event
	bytes int               // that it holds
}

// held is an object and its text.
type held struct {
	o    *scan.Object
	text string
}

// room has the replay hold room for the next events, of which there are not more
// than RVs.
func (p *replay) room(rvs uint64) {
	b := p.st.s.events
	all := min(int64(min(uint64(p.n), max(rvs, 1)))*p.size, replayBytes)
	least, got := min(all, fewestEvents*p.size), int64(0)
	if want := min(all, b.share()-p.held); want >= least {
		got = b.take(least, want, false)
	}
	if got == 0 { // what is kept is for speed only
		p.forget()
		p.settle(0)
		got = b.take(least, max(least, min(all, b.share())), true)
	}
	p.held += got
	p.fits = int(max(got/p.size, 1))
}

// settle has the replay hold room for what it has.
func (p *replay) settle(now int64) {
	p.st.s.events.settle(p.held, now)
	p.held = now
}

// end gives back all that the replay holds.
func (p *replay) end() {
	p.settle(0)
	p.st.s.events.leave()
}

// forget forgets what objects were before the next events.
func (p *replay) forget() {
	for _, part := range p.parts {
		clear(part.now)
	}
}

// read reads the next events above from, and returns up to where.
func (p *replay) read(from, to uint64) (next uint64, more bool, err error) {
	if err := p.st.s.use(); err != nil {
		return 0, false, err
	}
	defer p.st.s.done()
	p.steps = p.steps[:0]
	err = p.st.log(from, to, func(key []byte, rv uint64, _ version) bool {
		// Those at one RV go together: the next ones are those above it.
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
	p.each(func(i int) { errs[i] = p.parts[i].read(p.st) })
	p.settle(p.used())
	// Asked when all is read, for each part has a reader of its own.
	if err := p.st.retained(from); err != nil {
		return 0, false, err
	}
	return p.steps[len(p.steps)-1].rv, more, cmp.Or(errs...)
}

// divide gives each part its steps.
func (p *replay) divide() {
	if p.parts == nil || p.n <= fewEvents {
		keys := make([]kube.Key, len(p.steps))
		for i := range p.steps {
			keys[i] = p.steps[i].key
		}
		slices.Sort(keys)
		n := runtime.GOMAXPROCS(0)
		p.parts, p.bounds = nil, nil
		for i := range n {
			p.parts = append(p.parts, &part{now: map[kube.Key]held{}})
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

// each calls f for each part, at the same time.
func (p *replay) each(f func(i int)) {
	var wg sync.WaitGroup
	for i := range p.parts {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// read reads the values of the part's steps, and what their objects were before.
func (p *part) read(st *Stream) (err error) {
	if err := p.r.open(st); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, p.r.close()) }()
	steps := slices.Clone(p.steps)
	slices.SortFunc(steps, func(a, b *step) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.rv, b.rv)) })
	p.bytes = 0
	for i, s := range steps {
		if i == 0 || s.key != steps[i-1].key {
			if err := p.before(s); err != nil {
				return err
			}
			p.r.it.SeekGE(appendVersionKey(nil, st.id, s.key, s.rv))
		} else {
			p.r.it.Next()
		}
		if !p.r.it.Valid() {
			return cmp.Or(damage(p.r.it.Error()), corrupt("%s at %d is in the log, but not among the versions", s.key, s.rv))
		}
		key, rv, v, err := p.r.current()
		if err != nil {
			return err
		}
		if key != s.key || rv != s.rv {
			return corrupt("%s at %d is in the log, but not among the versions", s.key, s.rv)
		}
		v.text = append(make([]byte, 0, len(v.text)), v.text...) // it is the iterator's
		s.value = v
		p.bytes += len(v.text)
	}
	for _, h := range p.now {
		p.bytes += len(h.text)
	}
	return nil
}

// before reads what the object of a step was before it.
func (p *part) before(s *step) error {
	if _, ok := p.now[s.key]; ok {
		return nil
	}
	o, err := p.r.get(s.key, s.rv-1)
	if err != nil || o == nil {
		return err
	}
	p.now[s.key] = held{o, string(p.r.text)}
	return nil
}

// make makes the events of the steps.
func (p *part) make(steps []step, self int, columns func(uint64) (string, error)) error {
	for i := range steps {
		s := &steps[i]
		if s.part != self {
			continue
		}
		prev, text := p.now[s.key], ""
		switch v := &s.value; {
		case !v.delta:
			text = viewOf(v.text) // it is no one else's
		case prev.o == nil || prev.o.RV != v.base:
			return corrupt("%s at %d: the version at %d, which it builds on, is missing", s.key, s.rv, v.base)
		default:
			next, err := applyDelta(make([]byte, 0, len(prev.text)+len(v.text)), prev.text, v.text)
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
			delete(p.now, s.key)
		} else {
			p.now[s.key] = held{o, text}
		}
	}
	return nil
}

// emit makes the events of what was read, and calls f for each, until it returns
// false. The next ones are made while f has those before.
func (p *replay) emit(f func(Event) bool) (stopped bool, err error) {
	errs := make([]error, len(p.parts))
	begin := func(steps []step) (wait func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.each(func(i int) { errs[i] = p.parts[i].make(steps, i, p.st.columnsOf) })
		}()
		return func() { <-done }
	}
	rest := p.steps
	take := func() (steps []step) {
		steps, rest = rest[:min(len(rest), madeAtOnce)], rest[min(len(rest), madeAtOnce):]
		return steps
	}
	steps := take()
	wait := begin(steps)
	for len(steps) > 0 {
		if wait(); cmp.Or(errs...) != nil {
			return false, cmp.Or(errs...)
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

// used is about what the replay holds before it has yielded what it read.
func (p *replay) used() int64 {
	var used, texts, objects int
	for _, part := range p.parts {
		used += part.bytes
		for _, h := range part.now {
			texts += len(h.text)
		}
		objects += len(part.now)
	}
	if made := min(len(p.steps), 2*madeAtOnce); objects > 0 {
		used += made * (texts / objects)
	}
	return int64(used)
}

// adapt chooses how many events to read next: the more the better, but not more
// than there is room for, and few for who takes them slowly.
func (p *replay) adapt(busy, all time.Duration) {
	used := int64(1)
	for _, part := range p.parts {
		used += int64(part.bytes)
	}
	fits := int(int64(p.n) * replayBytes / used)
	if all > 8*busy {
		p.n /= 4
	} else {
		p.n *= 4
	}
	p.n = min(max(min(p.n, fits), fewEvents), manyEvents)
	if n := int64(len(p.steps)); n > 0 {
		p.size = max(used/n, 1<<8)
	}
	if used > replayBytes || used > p.st.s.events.share() {
		p.forget()
		used = 0
	}
	p.settle(used)
}
