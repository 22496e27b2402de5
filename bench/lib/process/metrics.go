// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Memory is the memory of a Go server, in bytes.
type Memory struct {
	RSS  float64
	Live float64 // heap in use just after a collection, and stacks
}

// MemoryOf makes a server collect garbage, and returns its memory. The server has
// /metrics and /debug/pprof at url.
func MemoryOf(pid int, client *http.Client, url string) (Memory, error) {
	// The second collection frees objects that finalizers released after the first.
	for range 2 {
		if err := Fetch(client, url+"/debug/pprof/heap?gc=1", io.Discard); err != nil {
			return Memory{}, err
		}
	}
	values, err := Metrics(client, url, "go_memstats_heap_alloc_bytes", "go_memstats_stack_inuse_bytes")
	if err != nil {
		return Memory{}, err
	}
	rss, err := RSS(pid)
	return Memory{RSS: rss, Live: values[0] + values[1]}, err
}

// Metrics returns the values of metrics of a server, each summed over its labels. A
// missing metric is an error.
func Metrics(client *http.Client, url string, names ...string) ([]float64, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(Fetch(client, url+"/metrics", w)) }()
	defer r.Close()
	return parseMetrics(r, names)
}

func parseMetrics(r io.Reader, names []string) ([]float64, error) {
	values, found := make([]float64, len(names)), make([]bool, len(names))
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		for i, name := range names {
			rest, ok := strings.CutPrefix(in.Text(), name)
			if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
				continue
			}
			v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
			if err != nil {
				return nil, fmt.Errorf("metric %s: %w", name, err)
			}
			values[i] += v
			found[i] = true
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	for i, name := range names {
		if !found[i] {
			return nil, fmt.Errorf("no metric %s", name)
		}
	}
	return values, nil
}

// Fetch copies the body of the answer to a GET.
func Fetch(client *http.Client, url string, to io.Writer) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	_, err = io.Copy(to, resp.Body)
	return err
}
