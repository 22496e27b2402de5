// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

const (
	// timeout is how long one phase may take.
	timeout = 10 * time.Minute
	// quiet is how long a client must have been idle for a phase to end.
	quiet = 300 * time.Millisecond
	poll  = 2 * time.Millisecond
)

// Run runs the phases of a measurement. Before each phase it collects garbage and
// returns free memory to the system, so that each phase has its own peak.
func Run(order Order, client Client) (Result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	commands, err := newCommander(order.Target)
	if err != nil {
		return Result{}, err
	}
	var result Result
	heap := liveHeap()

	m, err := begin(client, order, "sync")
	if err != nil {
		return Result{}, err
	}
	if err := client.Start(ctx, order.Target); err != nil {
		return Result{}, err
	}
	result.Sync, err = m.await(func() bool {
		return client.Synced() && client.Handled() >= int64(order.Pods)
	})
	if err != nil {
		return Result{}, err
	}
	result.HeapPerObject = (liveHeap() - heap) / float64(order.Pods)

	if result.Events, err = follow(client, commands, order, "events"); err != nil {
		return Result{}, err
	}
	if d, ok := client.(Decoder); ok {
		d.Decode(true)
		decoded, err := follow(client, commands, order, "decoded")
		if err != nil {
			return Result{}, err
		}
		d.Decode(false)
		result.Decoded = &decoded
	}

	if m, err = begin(client, order, "relist"); err != nil {
		return Result{}, err
	}
	last, err := commands.do("/bench/expire")
	if err != nil {
		return Result{}, err
	}
	if result.Relist, err = m.settle(last); err != nil {
		return Result{}, err
	}
	if n := client.Len(); n != order.Pods {
		return Result{}, fmt.Errorf("%d Pods are kept of %d", n, order.Pods)
	}
	return result, nil
}

// follow makes the server change Pods and waits until the client has the changes.
func follow(client Client, commands *commander, order Order, phase string) (Phase, error) {
	m, err := begin(client, order, phase)
	if err != nil {
		return Phase{}, err
	}
	last, err := commands.do(fmt.Sprintf("/bench/events?n=%d", order.Events))
	if err != nil {
		return Phase{}, err
	}
	return m.settle(last)
}

// A measurement is the measurement of one phase.
type measurement struct {
	client  Client
	phase   string
	profile *os.File // nil for none
	memory  *memory
	start   time.Time
	cpu     time.Duration
	handled int64
}

func begin(client Client, order Order, phase string) (*measurement, error) {
	var profile *os.File
	if order.Profile != "" {
		var err error
		if profile, err = os.Create(order.Profile + phase); err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(profile); err != nil {
			return nil, err
		}
	}
	memory, err := watchMemory()
	if err != nil {
		return nil, err
	}
	return &measurement{client, phase, profile, memory, time.Now(), cpuTime(), client.Handled()}, nil
}

// end returns the phase, given the time and the CPU time of its end.
func (m *measurement) end(at time.Time, cpu time.Duration, handled int64) (Phase, error) {
	peak, err := m.memory.peak()
	if m.profile != nil {
		pprof.StopCPUProfile()
		err = cmp.Or(err, m.profile.Close())
	}
	return Phase{
		Wall: at.Sub(m.start).Seconds(), CPU: (cpu - m.cpu).Seconds(),
		RSSBefore: m.memory.before, RSSPeak: peak, Handled: handled - m.handled,
	}, err
}

func (m *measurement) await(done func() bool) (Phase, error) {
	for !done() {
		if time.Since(m.start) > timeout {
			return Phase{}, m.overdue()
		}
		time.Sleep(poll)
	}
	return m.end(time.Now(), cpuTime(), m.client.Handled())
}

// settle waits until the client has the last change, its handler was called, and the
// process is idle. The phase ends with the last call of the handler. A library may
// coalesce events; the number of calls shows that.
func (m *measurement) settle(last mark) (Phase, error) {
	at, cpu, handled := m.start, m.cpu, m.handled
	kept := false
	quietSince, quietCPU := at, cpu
	for {
		if now := m.client.Handled(); now != handled {
			at, cpu, handled = time.Now(), cpuTime(), now
			quietSince, quietCPU = at, cpu
		}
		if !kept && m.client.ResourceVersion(last.Namespace, last.Name) == last.ResourceVersion {
			kept, quietSince, quietCPU = true, time.Now(), cpuTime()
		}
		// A busy process may be working through a queue.
		silence := time.Since(quietSince)
		if kept && handled != m.handled && silence >= quiet && cpuTime()-quietCPU < silence/2 {
			return m.end(at, cpu, handled)
		}
		if silence > timeout {
			return Phase{}, m.overdue()
		}
		time.Sleep(poll)
	}
}

func (m *measurement) overdue() error {
	return fmt.Errorf("%s: not complete after %v: %d calls of the handler, %d Pods", m.phase, timeout, m.client.Handled()-m.handled, m.client.Len())
}

// liveHeap returns the bytes of the heap in use. The second collection frees objects
// that finalizers released after the first.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// A mark is the last change that a command causes.
type mark struct {
	Namespace, Name, ResourceVersion string
}

// A commander sends commands to the server.
type commander struct {
	url    string
	client *http.Client
}

func newCommander(t Target) (*commander, error) {
	transport := &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true}
	if t.CA != nil {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(t.CA) {
			return nil, errors.New("the CA is not a certificate")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return &commander{t.URL, &http.Client{Transport: transport}}, nil
}

func (c *commander) do(what string) (mark, error) {
	resp, err := c.client.Post(c.url+what, "", nil)
	if err != nil {
		return mark{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return mark{}, fmt.Errorf("%s: %s", what, resp.Status)
	}
	var m mark
	err = json.NewDecoder(resp.Body).Decode(&m)
	return m, err
}
