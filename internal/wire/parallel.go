// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// atOnce is how many items of a list one goroutine takes at a time. A list of no
// more is encoded by its caller.
const atOnce = 64

// encodeAll appends the items of a list to a body, on as many cores as there are.
// encode is called for each run of items, which begins at the given place in the
// list, with a body of its own; after an error no further run is begun.
func encodeAll(b *Body, items []*scan.Object, encode func(b *Body, at int, run []*scan.Object) error) error {
	if len(items) <= atOnce {
		return encode(b, 0, items)
	}
	n := (len(items) + atOnce - 1) / atOnce
	bodies, errs := make([]Body, n), make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			at := i * atOnce
			run := items[at:min(at+atOnce, len(items))]
			bodies[i].parts = make([]string, 0, 4*len(run))
			if errs[i] = encode(&bodies[i], at, run); errs[i] != nil {
				failed.Store(true)
			}
		}
	}
	var others sync.WaitGroup
	var panicked atomic.Value
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		others.Go(func() {
			// It is the request's, not the process's.
			defer func() {
				if p := recover(); p != nil {
					panicked.Store(fmt.Sprint(p))
					failed.Store(true)
				}
			}()
			work()
		})
	}
	work()
	others.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	total := len(b.parts) + 1
	for i := range bodies {
		total += len(bodies[i].parts)
	}
	b.parts = slices.Grow(b.parts, total)
	for i := range bodies {
		b.add(bodies[i].parts...)
	}
	return nil
}
