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

// runLength is how many items of a list a goroutine encodes at a time. A list of
// one run is encoded by its caller.
const runLength = 64

// encodeAll appends the items of a list to a body, on all cores. encode is called
// for each run of items, which begins at items[at], with its own body. After
// an error no further run is begun.
func encodeAll(b *Body, items []*scan.Object, encode func(b *Body, at int, run []*scan.Object) error) error {
	if len(items) <= runLength {
		return encode(b, 0, items)
	}
	n := (len(items) + runLength - 1) / runLength
	bodies, errs := make([]Body, n), make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			at := i * runLength
			run := items[at:min(at+runLength, len(items))]
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
			// A panic fails the request, not the process.
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
