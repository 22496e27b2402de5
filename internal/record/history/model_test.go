// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A model is the expected content of one stream: every event, and every state.
type model struct {
	rnd   *rand.Rand
	noise int // maximum of unique bytes in an object
	rv    uint64
	clock uint64 // ms
	quiet uint64 // ms of it that only Observed has recorded
	// withdrawn are the ms of it that Withdraw has taken back.
	withdrawn uint64
	now       map[kube.Key]*scan.Object
	states    []state // the observed states, in order
	events    []Event // as readers have to get them
	gaps      []Gap
}

type state struct {
	Moment
	objects map[kube.Key]*scan.Object
}

func newModel(rnd *rand.Rand, rv, clock uint64) *model {
	m := &model{rnd: rnd, noise: 300, rv: rv, clock: clock, now: map[kube.Key]*scan.Object{}}
	for range rnd.IntN(10) {
		o := object(m.key(), rv-1-rnd.Uint64N(rv-1), 9)
		m.now[o.Key] = o
	}
	m.known()
	return m
}

func (m *model) key() kube.Key {
	return kube.MakeKey([]string{"a", "a-b", "b"}[m.rnd.IntN(3)], fmt.Sprint("p", m.rnd.IntN(12)))
}

// known records the current state as observed.
func (m *model) known() {
	if n := len(m.states); n > 0 && m.states[n-1].RV == m.rv {
		m.states[n-1].objects = maps.Clone(m.now)
		return
	}
	m.states = append(m.states, state{Moment{m.rv, ms(m.clock)}, maps.Clone(m.now)})
}

// happens changes an object at m.rv, a random one if the key is "".
func (m *model) happens(key kube.Key, deleted bool) Event {
	if key == "" {
		key = m.key()
		deleted = m.now[key] != nil && m.rnd.IntN(4) == 0
	}
	e := Event{Type: kube.Modified, Prev: m.now[key], At: ms(m.clock), Object: object(key, m.rv, 1+m.rnd.IntN(m.noise))}
	switch {
	case e.Prev == nil:
		e.Type = kube.Added
	case deleted:
		e.Type = kube.Deleted
	}
	if m.now[key] = e.Object; e.Type == kube.Deleted {
		delete(m.now, key)
	}
	return e
}

// record records an event, and returns it as its writer has it: the writer may not have
// the previous version, or may have it with another row.
func (m *model) record(e Event) Event {
	m.events = append(m.events, e)
	m.known()
	switch m.rnd.IntN(4) {
	case 0:
		e.Prev = nil
	case 1:
		if e.Prev != nil {
			e.Prev = e.Prev.WithRow(`"cells":["otherwise"]`, `[{"name":"Other"}]`)
		}
	}
	return e
}

// batch returns the next events after the head, and moves the head. Times between the
// events are multiples of a unit.
func (m *model) batch(unit uint64) (events []Event) {
	for range m.rnd.IntN(30) {
		m.rv += 1 + m.rnd.Uint64N(3)
		m.clock += m.rnd.Uint64N(50) * unit
		if m.rnd.IntN(10) > 0 {
			events = append(events, m.record(m.happens("", false)))
			continue
		}
		// Several at one RV, as when a lease expires, in the order of their names.
		keys := slices.Sorted(maps.Keys(m.now))
		for _, key := range keys[:min(len(keys), 3)] {
			events = append(events, m.record(m.happens(key, true)))
		}
	}
	m.rv += m.rnd.Uint64N(2)
	m.clock, m.quiet, m.withdrawn = m.clock+m.rnd.Uint64N(500)*unit, 0, 0
	m.known()
	return events
}

// late returns events of a time in which nothing was observed, which have come at its end:
// at least one if so asked.
func (m *model) late(some bool) (events []Event, since time.Time) {
	// It may turn out that nothing was observed when something was believed to be.
	appended := ms(m.clock - m.quiet)
	g := Gap{From: m.rv, To: m.rv, Since: ms(m.clock - m.rnd.Uint64N(m.quiet+1))}
	m.clock += 1 + m.rnd.Uint64N(1000)
	g.Until = ms(m.clock)
	if n := len(m.gaps); n > 0 && m.gaps[n-1].Late() && m.gaps[n-1].Until.Equal(g.Since) {
		m.gaps[n-1].Until = g.Until
	} else {
		m.gaps = append(m.gaps, g)
	}
	for events = m.batch(0); some && len(events) == 0; {
		events = m.batch(0)
	}
	if since = g.Since; since.Equal(appended) {
		since = since.Add(-time.Duration(m.rnd.IntN(2)) * time.Second) // the append was later
	}
	return events, since
}

// withdraw makes the events after a time come late, up to the last append.
func (m *model) withdraw(since, begin time.Time) {
	m.withdrawn = m.quiet
	n := len(m.gaps)
	if since.Before(begin) {
		since = begin
	}
	if n > 0 && since.Before(m.gaps[n-1].Until) {
		since = m.gaps[n-1].Until
	}
	switch until := ms(m.clock - m.quiet); {
	case !since.Before(until):
	case n > 0 && m.gaps[n-1].Late() && m.gaps[n-1].Until.Equal(since):
		m.gaps[n-1].Until = until
	default:
		i := slices.IndexFunc(m.states, func(s state) bool { return s.At.After(since) })
		if i < 0 {
			i = len(m.states)
		}
		rv := m.states[i-1].RV
		m.gaps = append(m.gaps, Gap{From: rv, To: rv, Since: since, Until: until})
	}
}

// miss makes changes that no watch observes, and returns the difference as events.
func (m *model) miss() (events []Event) {
	before := maps.Clone(m.now)
	g := Gap{From: m.rv, Since: ms(m.clock - m.withdrawn)}
	for range 1 + m.rnd.IntN(20) {
		m.rv++
		m.happens("", false)
	}
	m.rv++
	m.clock, m.quiet, m.withdrawn = m.clock+1000, 0, 0
	g.To, g.Until = m.rv, ms(m.clock)
	m.gaps = append(m.gaps, g)
	free := g.From
	for key, was := range before {
		is := m.now[key]
		if is == nil {
			for taken := true; taken; {
				free++
				taken = false
				for _, o := range m.now {
					taken = taken || o.RV == free
				}
			}
			events = append(events, Event{Type: kube.Deleted, Object: was.At(free), Prev: was})
		} else if is.RV != was.RV {
			events = append(events, Event{Type: kube.Modified, Object: is, Prev: was})
		}
	}
	for key, is := range m.now {
		if before[key] == nil {
			events = append(events, Event{Type: kube.Added, Object: is})
		}
	}
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Object.RV, b.Object.RV) })
	for i := range events {
		events[i].Inferred, events[i].At = true, g.Until
		m.events = append(m.events, events[i])
	}
	m.known()
	return events
}

// at returns the state at rv; false if it was not observed.
func (m *model) at(rv uint64) (state, bool) {
	for _, g := range m.gaps {
		if g.From < rv && rv < g.To {
			return state{}, false
		}
	}
	i, _ := slices.BinarySearchFunc(m.states, rv+1, func(s state, rv uint64) int { return cmp.Compare(s.RV, rv) })
	if i == 0 || rv > m.rv {
		return state{}, false
	}
	return m.states[i-1], true
}

func texts(objects map[kube.Key]*scan.Object) map[kube.Key]string {
	out := map[kube.Key]string{}
	for k, o := range objects {
		out[k] = o.JSON + o.Row + o.Columns
	}
	return out
}

// brief returns an event as text.
func brief(e Event) string {
	prev := "none"
	if e.Prev != nil {
		prev = e.Prev.JSON + e.Prev.Row
	}
	return fmt.Sprint(e.Type, e.Inferred, e.At.UnixMilli(), e.Object.JSON, e.Object.Row, e.Object.Columns, " before: ", prev)
}

func briefs(events []Event) (out []string) {
	for _, e := range events {
		out = append(out, brief(e))
	}
	return out
}

// TestModel records a random cluster with gaps, across restarts, retention and epochs,
// and compares what readers get with the model.
func TestModel(t *testing.T) {
	first := newSeed(t)
	for seed := first; seed < first+uint64(rounds(t, 1)); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			testModel(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func testModel(t *testing.T, rnd *rand.Rand) {
	dir := t.TempDir()
	s := must(Open(dir, Options{Cluster: "c"}))
	defer func() { s.Close() }()
	var models []*model // by epoch
	begin := func(rv, clock uint64) *Stream {
		m := newModel(rnd, rv, clock)
		models = append(models, m)
		st := must(s.Stream(pods))
		if len(models) > 1 {
			st = must(s.NewEpoch(pods))
		}
		if err := st.Begin(podForm, maps.Values(m.now), m.rv, ms(m.clock)); err != nil {
			t.Fatal(err)
		}
		return st
	}
	st := begin(100, 1_000_000)
	for range 80 {
		m := models[len(models)-1]
		var err error
		switch n := rnd.IntN(20); {
		case n == 0:
			if err = s.Close(); err == nil {
				s = must(Open(dir, Options{Cluster: "c"}))
				st = must(s.Stream(pods))
			}
		case n == 1:
			err = st.AppendGap(m.miss(), m.rv, ms(m.clock))
		case n == 5:
			longer := rnd.Uint64N(1000)
			m.clock, m.quiet, m.withdrawn = m.clock+longer, m.quiet+longer, 0
			if err = s.Observed(map[*Stream]time.Time{st: ms(m.clock)}); err == nil && !st.Head().At.Equal(ms(m.clock)) {
				t.Fatalf("the head is %v, it was observed until %v", st.Head(), ms(m.clock))
			}
		case n == 6:
			since, appended := ms(m.clock-rnd.Uint64N(3000)), ms(m.clock-m.quiet)
			m.withdraw(since, st.Span().From.At)
			if err = st.Withdraw(t.Context(), since); err == nil && !st.Head().At.Equal(appended) {
				t.Fatalf("the head is %v, it was appended at %v", st.Head(), appended)
			}
		case n == 4:
			events, since := m.late(false)
			for i := range events {
				events[i].At = since // replaced
			}
			err = st.AppendLate(events, m.rv, since, ms(m.clock))
		case n == 2:
			s.now = func() time.Time { return ms(m.clock) }
			s.opts.MaxAge = time.Duration(rnd.IntN(20_000)) * time.Millisecond
			err = s.Trim(t.Context())
			s.now = time.Now
		case n == 3 && len(models) < 4:
			st = begin(20+rnd.Uint64N(200), m.clock+rnd.Uint64N(1000))
		default:
			events := m.batch(1)
			if i := len(events) / 2; len(events) > 0 && rnd.IntN(2) == 0 {
				// In two parts, which may split the events of one RV.
				err = st.Append(events[:i+1], events[i].Object.RV, events[i].At)
				events = events[i+1:]
			}
			if err == nil {
				err = st.Append(events, m.rv, ms(m.clock))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		streams := s.Streams(pods)
		for _, st := range streams {
			check(t, models[st.Epoch()], st)
		}
		if last := streams[len(streams)-1]; last.Epoch() != len(models)-1 {
			t.Fatalf("the newest epoch is %d, not %d", last.Epoch(), len(models)-1)
		}
	}
}

// check compares some of what a stream holds with the model.
func check(t *testing.T, m *model, st *Stream) {
	t.Helper()
	span := st.Span()
	if head := m.states[len(m.states)-1]; span.To.RV != m.rv || span.To.RV != head.RV {
		t.Fatalf("the head is %v, not %v", span.To, head.Moment)
	}
	gaps := slices.DeleteFunc(slices.Clone(m.gaps), func(g Gap) bool { return g.before(span.From) })
	if diff := gocmp.Diff(gaps, st.Gaps(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("gaps (-model +history)\n%s", diff)
	}
	rv := span.From.RV - 3 + m.rnd.Uint64N(m.rv-span.From.RV+7)
	want, known := m.at(rv)
	if err := st.Check(rv); known != (err == nil) && rv >= span.From.RV {
		t.Fatalf("%d: %v; known: %v", rv, err, known)
	} else if rv < span.From.RV && !errors.Is(err, ErrBefore) {
		t.Fatalf("%d, before %d: %v", rv, span.From.RV, err)
	}
	if !known || rv < span.From.RV {
		return
	}
	checkState(t, m, st, want, rv)
	to := rv + m.rnd.Uint64N(m.rv-rv+1)
	checkEvents(t, m, st, rv, to)
	checkChanged(t, m, st, rv, to)
	checkTimes(t, m, st)
}

func checkState(t *testing.T, m *model, st *Stream, want state, rv uint64) {
	t.Helper()
	namespace, from := []string{"", "", "a", "a-b"}[m.rnd.IntN(4)], kube.Key("")
	if m.rnd.IntN(3) == 0 {
		from = m.key()
	}
	expected := maps.Clone(want.objects)
	maps.DeleteFunc(expected, func(key kube.Key, _ *scan.Object) bool {
		return key < from || namespace != "" && key.Namespace() != namespace
	})
	got, last := map[kube.Key]*scan.Object{}, kube.Key("")
	for o, err := range st.List(t.Context(), rv, namespace, from) {
		if err != nil || o.Key <= last {
			t.Fatalf("%v after %s: %v", o, last, err)
		}
		last = o.Key
		got[o.Key] = o
	}
	if diff := gocmp.Diff(texts(expected), texts(got)); diff != "" {
		t.Fatalf("at %d (-model +history)\n%s", rv, diff)
	}
	key := m.key()
	o, err := st.Get(t.Context(), rv, key)
	if w := want.objects[key]; err != nil || (w == nil) != (o == nil) || w != nil && w.JSON != o.JSON {
		t.Fatalf("%s at %d is %v, %v, not %v", key, rv, o, err, w)
	}
}

// checkChanged checks that a difference has each object of which an event lies between two
// RVs, as it is at one of them.
func checkChanged(t *testing.T, m *model, st *Stream, rv, to uint64) {
	t.Helper()
	if m.rnd.IntN(2) == 0 {
		rv, to = to, rv
	}
	namespace := []string{"", "", "a", "a-b"}[m.rnd.IntN(4)]
	expected := map[kube.Key]string{}
	for _, e := range m.events {
		if min(rv, to) < e.Object.RV && e.Object.RV <= max(rv, to) && (namespace == "" || namespace == e.Object.Key.Namespace()) {
			expected[e.Object.Key] = ""
		}
	}
	want, known := m.at(to)
	if !known {
		return
	}
	for key := range expected {
		if o := want.objects[key]; o != nil {
			expected[key] = o.JSON
		}
	}
	keys, err := st.Changed(t.Context(), rv, to, namespace, len(m.events))
	if err != nil || !slices.IsSorted(keys) {
		t.Fatalf("%q %v", keys, err)
	}
	got := make([]map[kube.Key]string, st.Parts())
	err = st.Texts(t.Context(), to, keys, func(part int, key kube.Key, json string) {
		if got[part] == nil {
			got[part] = map[kube.Key]string{}
		}
		got[part][key] = strings.Clone(json)
	})
	all := map[kube.Key]string{}
	for _, part := range got {
		maps.Copy(all, part)
	}
	if diff := gocmp.Diff(expected, all); diff != "" || err != nil {
		t.Fatalf("from %d to %d (-model +history)\n%s %v", rv, to, diff, err)
	}
	if len(expected) > 0 && namespace == "" {
		if _, err := st.Changed(t.Context(), rv, to, "", 0); !errors.Is(err, ErrTooMany) {
			t.Fatalf("more changes than the limit: %v", err)
		}
	}
}

func checkEvents(t *testing.T, m *model, st *Stream, rv, to uint64) {
	t.Helper()
	key := m.key()
	var want, have, wantOf, haveOf []string
	for _, e := range m.events {
		if rv < e.Object.RV && e.Object.RV <= to {
			want = append(want, brief(e))
		}
		if rv < e.Object.RV && e.Object.Key == key {
			wantOf = append(wantOf, brief(e))
		}
	}
	for e, err := range st.Events(t.Context(), rv, to) {
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, brief(e))
	}
	for e, err := range st.Versions(t.Context(), key, rv) {
		if err != nil {
			t.Fatal(err)
		}
		haveOf = append(haveOf, brief(e))
	}
	if diff := gocmp.Diff(want, have); diff != "" {
		t.Fatalf("events of (%d, %d] (-model +history)\n%s", rv, to, diff)
	}
	if diff := gocmp.Diff(wantOf, haveOf); diff != "" {
		t.Fatalf("events of %s above %d (-model +history)\n%s", key, rv, diff)
	}
}

func checkTimes(t *testing.T, m *model, st *Stream) {
	t.Helper()
	span := st.Span()
	at := span.From.At.Add(time.Duration(m.rnd.Int64N(span.To.At.Sub(span.From.At).Milliseconds()+1)) * time.Millisecond)
	got, err := st.At(t.Context(), at)
	if slices.ContainsFunc(m.gaps, func(g Gap) bool { return g.Since.Before(at) && at.Before(g.Until) }) {
		if !errors.Is(err, ErrGap) {
			t.Fatalf("%v, in a gap: %v, %v", at, got, err)
		}
		return
	}
	want := span.From
	for _, s := range m.states {
		if s.RV >= want.RV && !s.At.After(at) {
			want = s.Moment
		}
	}
	if got.RV != want.RV || err != nil {
		t.Fatalf("the state at %v is that of %v, %v, not %v; span %v", at, got, err, want, span)
	}
	total, expected := EventCount{}, EventCount{}
	counts, err := st.EventCounts(t.Context(), at, span.To.At.Add(time.Millisecond), 100*time.Millisecond, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		total.Added, total.Modified, total.Deleted = total.Added+c.Added, total.Modified+c.Modified, total.Deleted+c.Deleted
	}
	for _, e := range m.events {
		if e.Object.RV > span.From.RV && !e.At.Before(at) {
			switch e.Type {
			case kube.Added:
				expected.Added++
			case kube.Modified:
				expected.Modified++
			case kube.Deleted:
				expected.Deleted++
			}
		}
	}
	if total != expected {
		t.Fatalf("from %v on: %v, not %v", at, total, expected)
	}
}
