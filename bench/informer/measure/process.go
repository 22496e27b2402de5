// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// memory measures the peak of the resident set since its start.
type memory struct {
	before float64

	// sampled is the peak of samples, if the kernel's own peak cannot be reset.
	sampled float64
	stop    chan struct{}
	sampler sync.WaitGroup
}

func watchMemory() (*memory, error) {
	debug.FreeOSMemory()
	reset := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	before, err := status("VmRSS:")
	if err != nil {
		return nil, err
	}
	m := &memory{before: before}
	if reset != nil {
		m.sampled, m.stop = before, make(chan struct{})
		m.sampler.Go(m.sample)
	}
	return m, nil
}

// sample takes samples until it is stopped, and a last one then.
func (m *memory) sample() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for stopped := false; !stopped; {
		select {
		case <-m.stop:
			stopped = true
		case <-tick.C:
		}
		if rss, err := status("VmRSS:"); err == nil {
			m.sampled = max(m.sampled, rss)
		}
	}
}

// peak ends the measurement and returns the peak.
func (m *memory) peak() (float64, error) {
	if m.stop == nil {
		return status("VmHWM:")
	}
	close(m.stop)
	m.sampler.Wait()
	return m.sampled, nil
}

// status returns a size from /proc/self/status, in bytes.
func status(field string) (float64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("measuring memory needs Linux: %w", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if f := bytes.Fields(lines.Bytes()); len(f) == 3 && string(f[0]) == field {
			kB, err := strconv.ParseFloat(string(f[1]), 64)
			return kB * 1024, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", field)
}
