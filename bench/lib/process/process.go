// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package process measures the CPU time and the memory of other processes. It reads
// /proc, so it needs Linux.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU returns the CPU time of a process's threads, in user and system mode, in
// nanoseconds. If the kernel does not account for each thread, it returns the time in
// /proc/<pid>/stat, which is in ticks of 10 ms.
func CPU(pid int) (time.Duration, error) {
	whole, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, file := range threads {
		b, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		d, err := parseSchedstat(b)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += d
	}
	return more(sum, whole), nil
}

// tick is the unit of /proc/<pid>/stat, the same on every platform of Go.
const tick = 10 * time.Millisecond

// more chooses between the sum over the threads and the total of the process. The sum
// is more precise, but lacks the time of threads that have ended.
func more(sum, whole time.Duration) time.Duration {
	if sum+2*tick < whole {
		return whole
	}
	return sum
}

func readStat(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(b)
}

// parseStat returns the sum of user and system time, fields 14 and 15. The second
// field, a name in parentheses, may contain spaces and parentheses.
func parseStat(b []byte) (time.Duration, error) {
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("not a stat line: %q", b)
	}
	var sum time.Duration
	for _, ticks := range f[11:13] {
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("not a stat line: %w", err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// parseSchedstat returns the first field, which is nanoseconds on a CPU.
func parseSchedstat(b []byte) (time.Duration, error) {
	first, _, _ := strings.Cut(string(b), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(n), err
}

// RSS returns the resident set in bytes.
func RSS(pid int) (float64, error) { return status(pid, "VmRSS:") }

// AnonymousRSS returns the part of the resident set that is no file's: not the pages of
// the program, which the kernel maps by the megabyte and drops when it needs memory.
func AnonymousRSS(pid int) (float64, error) { return status(pid, "RssAnon:") }

// PeakRSS returns the largest resident set so far, in bytes.
func PeakRSS(pid int) (float64, error) { return status(pid, "VmHWM:") }

func status(pid int, field string) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseStatus(b, field)
}

func parseStatus(b []byte, field string) (float64, error) {
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == field && f[2] == "kB" {
			kB, err := strconv.ParseFloat(f[1], 64)
			return kB * 1024, err
		}
	}
	return 0, fmt.Errorf("no %s in the status of the process", field)
}
