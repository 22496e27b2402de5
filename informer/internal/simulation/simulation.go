// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulation has what the simulations in tests share: seeds that can be repeated,
// and faults that happen by chance.
package simulation

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Seeds returns the first of the seeds to run, and how many they are:
// WATCHKEEPER_SIMULATIONS of them, usual otherwise, a fourth of them in short mode, from
// WATCHKEEPER_SIMULATION_SEED, random otherwise.
func Seeds(t testing.TB, usual uint64) (first, seeds uint64) {
	t.Helper()
	if testing.Short() {
		usual = (usual + 3) / 4
	}
	seeds, first = usual, rand.Uint64N(1<<32)
	if n, err := strconv.ParseUint(os.Getenv("WATCHKEEPER_SIMULATIONS"), 10, 64); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("WATCHKEEPER_SIMULATION_SEED"), 10, 64); err == nil {
		first = n
	}
	t.Logf("WATCHKEEPER_SIMULATION_SEED=%d, %d simulations", first, seeds)
	return first, seeds
}

// Faults are what goes wrong in a simulation, decided by its seed. Any goroutine may call the
// methods.
type Faults struct {
	mu   sync.Mutex // guards the fields below
	r    *rand.Rand
	over bool
}

// NewFaults returns the faults of a seed.
func NewFaults(seed uint64) *Faults { return &Faults{r: rand.New(rand.NewPCG(seed, 3))} }

// Happens returns true one time in n until End is called.
func (f *Faults) Happens(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.over && f.r.IntN(n) == 0
}

// IntN returns a number below n, also after End.
func (f *Faults) IntN(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.r.IntN(n)
}

// End ends the faults.
func (f *Faults) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}
