// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"hash/maphash"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"
)

const (
	mutationInterval = time.Second // between two checks
	// mutationRetention is for how long an object is checked after a program has
	// received it, as by client-go.
	mutationRetention = 2 * time.Minute
)

// A mutationDetector finds programs that modify what [Ref.Object] or [Ref.Raw] has
// returned to them, see [Options].DetectMutation. A nil one does nothing.
type mutationDetector[T any] struct {
	res    Resource
	seed   maphash.Seed
	report func(error) // panics, but in tests

	mu     sync.Mutex                         // guards all below
	sums   map[weak.Pointer[record[T]]]uint64 // of the bytes of each record, as they were stored
	shared map[*record[T]]*sharedRecord[T]    // those that programs have received
}

// A sharedRecord is what programs have received of a record.
type sharedRecord[T any] struct {
	last    time.Time     // when they last did
	decoded []*decoded[T] // several if they decoded it at the same time
	fresh   *decoded[T]   // what they should be equal to; nil before the first check
}

func newMutationDetector[T any](res Resource) *mutationDetector[T] {
	return &mutationDetector[T]{
		res: res, seed: maphash.MakeSeed(), report: func(err error) { panic(err) },
		sums: map[weak.Pointer[record[T]]]uint64{}, shared: map[*record[T]]*sharedRecord[T]{},
	}
}

// stored is called for a record before programs can receive it.
func (m *mutationDetector[T]) stored(r *record[T]) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := weak.Make(r)
	m.sums[w] = maphash.Bytes(m.seed, r.raw)
	runtime.AddCleanup(r, m.forget, w)
}

func (m *mutationDetector[T]) forget(w weak.Pointer[record[T]]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sums, w)
}

// share is called when a program receives the bytes of a record, or, if d is not nil,
// the object.
func (m *mutationDetector[T]) share(r *record[T], d *decoded[T]) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shared[r]
	if s == nil {
		s = &sharedRecord[T]{}
		m.shared[r] = s
	}
	if s.last = time.Now(); d != nil && d.err == nil && !slices.Contains(s.decoded, d) {
		s.decoded = append(s.decoded, d)
	}
}

// run checks what programs have received until ctx ends.
func (m *mutationDetector[T]) run(ctx context.Context) {
	tick := time.NewTicker(mutationInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.enforce()
		case <-ctx.Done():
			return
		}
	}
}

// enforce panics if a program has modified what it received.
func (m *mutationDetector[T]) enforce() {
	if m == nil {
		return
	}
	if err := m.check(time.Now()); err != nil {
		m.report(err)
	}
}

// check returns an error if a program has modified what it received. Calls must not be
// concurrent.
func (m *mutationDetector[T]) check(now time.Time) error {
	for r, s := range m.snapshot() {
		if err := m.compare(r, &s); err != nil {
			return err
		}
		m.checked(r, s.fresh, now)
	}
	return nil
}

// snapshot returns a copy of shared, since the lock is not held while objects are
// decoded and compared.
func (m *mutationDetector[T]) snapshot() map[*record[T]]sharedRecord[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[*record[T]]sharedRecord[T], len(m.shared))
	for r, s := range m.shared {
		all[r] = *s
	}
	return all
}

// checked keeps the fresh object for the next check, or forgets a record that no program
// has received for a while.
func (m *mutationDetector[T]) checked(r *record[T], fresh *decoded[T], now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shared[r]
	if s.fresh = fresh; now.Sub(s.last) > mutationRetention {
		delete(m.shared, r)
	}
}

// compare returns an error if the bytes or an object of a record were modified.
func (m *mutationDetector[T]) compare(r *record[T], s *sharedRecord[T]) error {
	m.mu.Lock()
	sum := m.sums[weak.Make(r)]
	m.mu.Unlock()
	if maphash.Bytes(m.seed, r.raw) != sum {
		return m.modified(r, "the bytes")
	}
	for _, d := range s.decoded {
		if s.fresh == nil {
			s.fresh = r.decodeAnew()
		}
		if reflect.DeepEqual(d.object, s.fresh.object) {
			continue
		}
		if again := r.decodeAnew(); !reflect.DeepEqual(again.object, s.fresh.object) {
			return fmt.Errorf("informer: %s: two decodings of %s differ%s, so that DetectMutation is not possible with this codec",
				m.res.Name, Ref[T]{r}.Key(), where(s.fresh.object, again.object))
		}
		return m.modified(r, "the object"+where(s.fresh.object, d.object))
	}
	return nil
}

func (m *mutationDetector[T]) modified(r *record[T], what string) error {
	return fmt.Errorf("informer: %s: %s of %s at resourceVersion %d was modified: what Ref.Object and Ref.Raw return is shared, and has to be copied first (DeepCopy)",
		m.res.Name, what, Ref[T]{r}.Key(), r.rv)
}

// where returns " at " and the path of the first difference, if there is one.
func where(a, b any) string {
	if path, differ := firstDifference(reflect.ValueOf(a), reflect.ValueOf(b), 0); differ && path != "" {
		return " at " + path
	}
	return ""
}

// maxDepth of a difference that is looked for: values may have cycles.
const maxDepth = 100

// firstDifference returns the path of the first difference between two values that
// reflect.DeepEqual finds, such as .Spec.Data[x].
func firstDifference(a, b reflect.Value, depth int) (path string, differ bool) {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return "", a.IsValid() || b.IsValid()
	}
	if depth++; depth > maxDepth {
		return "", false
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		return firstDifference(a.Elem(), b.Elem(), depth)
	case reflect.Struct:
		for n := range a.NumField() {
			if path, differ := firstDifference(a.Field(n), b.Field(n), depth); differ {
				return "." + a.Type().Field(n).Name + path, true
			}
		}
	case reflect.Map:
		keys := slices.Concat(a.MapKeys(), b.MapKeys())
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
		for _, key := range keys {
			if path, differ := firstDifference(a.MapIndex(key), b.MapIndex(key), depth); differ {
				return fmt.Sprintf("[%v]%s", key, path), true
			}
		}
		return "", a.IsNil() != b.IsNil()
	case reflect.Slice, reflect.Array:
		for n := range min(a.Len(), b.Len()) {
			if path, differ := firstDifference(a.Index(n), b.Index(n), depth); differ {
				return fmt.Sprintf("[%d]%s", n, path), true
			}
		}
		return "", a.Len() != b.Len() || a.Kind() == reflect.Slice && a.IsNil() != b.IsNil()
	case reflect.Func:
		return "", !a.IsNil() || !b.IsNil()
	default:
		return "", !a.Equal(b)
	}
	return "", false
}
