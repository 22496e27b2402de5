// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	records "github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/testing/clocktest"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/faultproxy"
)

// A clockRound is a simulation of a gateway that records, while its clock is set at random
// moments, and of a reader of the past.
type clockRound struct {
	*simulation
	clockStory
	length time.Duration
	pace   time.Duration // mean pause between writes
	reader *clockReader
}

// quiet are the faults that let the gateway know less than it could, but not another history.
var quiet = profile{without: []faultproxy.Name{faultproxy.Older, faultproxy.Regress}}

func newClockRound(seed uint64) *clockRound {
	r := &clockRound{simulation: &simulation{seed: seed, rand: rand.New(rand.NewPCG(seed, 9))}}
	r.length = time.Duration(20+r.rand.IntN(100)) * time.Second
	r.pace = time.Duration(50<<r.rand.IntN(8)) * time.Millisecond
	if r.profile = quiet; r.rand.IntN(2) == 0 {
		r.profile = profile{}
	}
	return r
}

// drawStep draws by how much a clock is set: one second to a year, forward or back, and
// often what undoes the last step.
func drawStep(r *rand.Rand, last time.Duration) time.Duration {
	by := time.Duration(float64(time.Second) * math.Exp(r.Float64()*math.Log(365*24*3600)))
	switch r.IntN(4) {
	case 0:
		if last != 0 {
			return -last
		}
	case 1, 2: // what the round can live to see
		by = time.Second + time.Duration(r.IntN(60_000))*time.Millisecond
	}
	by = by.Truncate(time.Millisecond)
	if r.IntN(2) == 0 {
		return -by
	}
	return by
}

// run runs the round; the story of it can then be judged.
func (r *clockRound) run() (err error) {
	r.server = newAPIServer(r.seed)
	r.disk, r.clock = vfs.NewMem(), clocktest.New()
	if r.recorded, err = records.Select([]string{"configmaps"}, nil, false); err != nil {
		return err
	}
	draw := r.profile.draw(r.seed)
	if r.profile.without == nil {
		r.prompt = true
		draw = func(string, faultproxy.Kind, int) faultproxy.Fault { return faultproxy.Fault{Name: faultproxy.None} }
	}
	r.proxy, err = faultproxy.New(faultproxy.Options{Transport: local{handler: r.server, buffer: 4 << 10}, Seed: r.seed, Draw: draw})
	if err != nil {
		return err
	}
	if err := r.startGateway(); err != nil {
		return err
	}
	r.reader = newClockReader(r)
	var wg sync.WaitGroup
	end := time.Now().Add(r.length)
	write, read := rand.New(rand.NewPCG(r.seed, 3)), rand.New(rand.NewPCG(r.seed, 4))
	wg.Go(func() {
		for time.Now().Before(end) {
			for range 1 + write.IntN(3) {
				r.server.write()
			}
			time.Sleep(upTo(write, 2*r.pace))
		}
	})
	wg.Go(func() {
		pause := time.Duration(100<<read.IntN(6)) * time.Millisecond
		for time.Now().Before(end) {
			r.reader.read(read)
			time.Sleep(upTo(read, 2*pause))
		}
	})
	if err := r.disturb(end); err != nil {
		return err
	}
	wg.Wait()
	r.proxy.Heal()
	time.Sleep(time.Minute) // everything is observed
	r.server.write()
	time.Sleep(time.Second)
	r.healed = time.Now()
	for range 150 {
		r.reader.read(read)
		time.Sleep(upTo(read, 20*time.Millisecond))
	}
	if _, err := r.reader.index(context.Background()); err != nil {
		if r.epochs = strings.Contains(err.Error(), "epochs"); !r.epochs {
			return err
		}
	}
	r.killGateway()
	r.proxy.Close()
	r.finish()
	return nil
}

// finish completes the story.
func (r *clockRound) finish() {
	r.truth, r.settings, r.reads = &r.server.truth, r.clock.Settings(), r.reader.reads
	r.clockStory.gaps, r.clockStory.late = r.simulation.gaps, r.simulation.late
}

// disturb sets the clock, sometimes while no gateway runs, and performs kills until the
// end.
func (r *clockRound) disturb(end time.Time) error {
	last := time.Duration(0)
	set := func() {
		last = drawStep(r.rand, last)
		r.clock.Set(last)
	}
	for n := 1 + r.rand.IntN(8); n > 0; n-- {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		time.Sleep(upTo(r.rand, 2*left/time.Duration(n+1)))
		switch r.rand.IntN(8) {
		case 0, 1:
			down := time.Now()
			r.killGateway()
			time.Sleep(upTo(r.rand, 10*time.Second))
			if r.rand.IntN(3) > 0 {
				set()
				time.Sleep(upTo(r.rand, 2*time.Second))
			}
			if err := r.startGateway(); err != nil {
				return err
			}
			r.downtimes = append(r.downtimes, downtime{down, time.Now()})
		case 2:
			down := time.Now()
			r.server.setDown(true)
			time.Sleep(upTo(r.rand, 5*time.Second))
			if r.rand.IntN(2) == 0 {
				set()
				time.Sleep(upTo(r.rand, 5*time.Second))
			}
			r.server.setDown(false)
			r.outages = append(r.outages, downtime{down, time.Now()})
		case 3:
			r.proxy.CutAll()
			r.outages = append(r.outages, downtime{time.Now(), time.Now()})
		default:
			set()
			if r.rand.IntN(3) == 0 {
				time.Sleep(upTo(r.rand, 3*time.Second))
				set()
			}
		}
	}
	time.Sleep(time.Until(end))
	return nil
}

// keepLogs keeps the logs of the gateways in a file.
func (r *clockRound) keepLogs(t *testing.T) {
	t.Helper()
	name := filepath.Join(os.TempDir(), fmt.Sprintf("watchkeeper-clock-%d.log", r.seed))
	var text strings.Builder
	for _, l := range r.logs {
		text.WriteString(l.String() + "--- ended\n")
	}
	if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
		t.Error(err)
	}
	t.Logf("the gateways' logs are in %s", name)
	_ = r.proxy.Dump(name + ".faults")
}

// TestClock runs WATCHKEEPER_CLOCKS rounds (30) in virtual time, from
// WATCHKEEPER_CLOCKS_SEED on (random). The clock of the gateway is set forward and back by
// a second to a year, and the lists of the past are judged by the truth.
func TestClock(t *testing.T) {
	n := clustertest.FromEnv(t, "WATCHKEEPER_CLOCKS", 30)
	seed := clustertest.FromEnv(t, "WATCHKEEPER_CLOCKS_SEED", rand.Uint64N(1<<32))
	t.Logf("WATCHKEEPER_CLOCKS_SEED=%d, %d rounds", seed, n)
	var sum clockSummary
	for failed := 0; n > 0 && failed < 3; n-- {
		r := newClockRound(seed)
		ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if err := r.run(); err != nil {
					t.Fatal(err)
				}
			})
			all := r.judge(&sum)
			for _, v := range all[:min(6, len(all))] {
				t.Errorf("%.1500s", v)
			}
			if len(all) > 0 {
				t.Errorf("%d violations; repeat with WATCHKEEPER_CLOCKS=1 WATCHKEEPER_CLOCKS_SEED=%d; %v", len(all), seed, &r.clockStory)
				r.keepLogs(t)
			}
		})
		if !ok {
			failed++
		}
		seed++
	}
	t.Log(fmt.Sprint(sum))
}
