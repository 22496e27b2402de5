// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	records "github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
	"github.com/watchkeeper/watchkeeper/internal/testing/clocktest"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/faultproxy"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// A simulation is a round without processes: the gateway, the fault proxy and a
// simulated API server, all in virtual time.
type simulation struct {
	seed      uint64
	rand      *rand.Rand
	profile   profile
	server    *apiserver
	proxy     *faultproxy.Proxy
	clients   []*client
	informers []*informed
	texts     texts

	disk     vfs.FS // of the gateways' history; nil if nothing is recorded
	recorded records.Selection
	backups  []backup
	restored bool
	clock    *clocktest.Clock // of the gateways
	gaps     []gap            // of the history, when a gateway ended
	late     []pastGap        // the late ones

	mu      sync.Mutex // guards what follows
	gateway *gateway.Gateway
	logs    []*logtest.Log
	stop    func() // ends the gateway
	streams context.Context
	cut     context.CancelFunc // cuts its connections
}

// An upstreamTransport is the gateway's transport. A response that is passed
// through does not wait for its reader: httputil.ReverseProxy would hold a mutex
// meanwhile, and synctest does not advance time for a wait on a mutex.
type upstreamTransport struct{ local }

func (t upstreamTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if p, ok := r.Context().Value(pipeKey{}).(*pipe); ok {
		p.unlimit()
	}
	return t.local.RoundTrip(r)
}

// startGateway starts a gateway that replaces the previous one.
func (s *simulation) startGateway() error {
	transport := upstreamTransport{local{handler: s.proxy, buffer: 1 << s.rand.IntN(16)}}
	up, err := upstream.New(&rest.Config{Host: "http://upstream", Transport: transport}, upstream.Options{UserAgent: "watchkeeper/sim"})
	if err != nil {
		return err
	}
	up.Transport = transport // and that of new connections is the same
	log := &logtest.Log{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	var rec *records.Recorder
	if s.disk != nil {
		rec, err = records.New(records.Options{Dir: "data", FS: s.disk, Select: s.recorded, Upstream: up, Logger: logger, Now: s.clock.Now})
		if err != nil {
			return err
		}
	}
	g, err := gateway.New(gateway.Options{Upstream: up, History: rec, Logger: logger})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	recording, cancelRecording := context.WithCancel(context.Background())
	var ended, recorded sync.WaitGroup
	ended.Go(func() { _ = g.Run(ctx) })
	if rec != nil {
		recorded.Go(func() { rec.Run(recording, g.Cache()) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway, s.logs = g, append(s.logs, log)
	s.streams, s.cut = context.WithCancel(context.Background())
	s.stop = func() {
		cancel()
		ended.Wait()
		s.keepGaps(rec)
		cancelRecording()
		recorded.Wait()
	}
	return nil
}

// keepGaps keeps the gaps of the history that a gateway has recorded.
func (s *simulation) keepGaps(rec *records.Recorder) {
	if rec == nil || rec.Store() == nil {
		return
	}
	for _, id := range rec.Store().Resources() {
		for _, st := range rec.Store().Streams(id) {
			for _, g := range st.Gaps() {
				switch of := (gap{g.From, g.To}); {
				case g.Late():
					s.late = append(s.late, pastGap{of, g.Since, g.Until})
				case !slices.Contains(s.gaps, of):
					s.gaps = append(s.gaps, of)
				}
			}
		}
	}
}

// killGateway ends the gateway; its clients' connections break first.
func (s *simulation) killGateway() {
	s.mu.Lock()
	stop, cut := s.stop, s.cut
	s.gateway = nil
	s.mu.Unlock()
	cut()
	stop()
}

// ServeHTTP passes a request to the current gateway.
func (s *simulation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	g, streams := s.gateway, s.streams
	s.mu.Unlock()
	if g == nil {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(streams, func() {
		w.(*pipe).end(errBroken)
		cancel()
	})
	defer stop()
	g.ServeHTTP(w, r.WithContext(ctx))
}

// life draws after how many bytes the connection of a client breaks.
func (s *simulation) life() func() int {
	r := rand.New(rand.NewPCG(s.rand.Uint64(), 0))
	var mu sync.Mutex
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		if r.IntN(3) > 0 || s.isHealed() {
			return -1
		}
		return 1 + r.IntN(20000)
	}
}

func (s *simulation) isHealed() bool { return s.proxy.IsHealed() }

// run runs the simulation and returns its history.
func (s *simulation) run(length time.Duration) (*history, error) {
	s.server = newAPIServer(s.seed)
	var err error
	if s.rand.IntN(2) == 0 {
		s.disk = vfs.NewMem()
		if s.recorded, err = records.Select([]string{"configmaps"}, nil, false); err != nil {
			return nil, err
		}
	}
	s.proxy, err = faultproxy.New(faultproxy.Options{
		Transport: local{handler: s.server, buffer: 4 << 10}, Seed: s.seed, Draw: s.profile.draw(s.seed),
	})
	if err != nil {
		return nil, err
	}
	if err := s.startGateway(); err != nil {
		return nil, err
	}
	s.makeClients()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range s.clients {
		wg.Go(func() {
			time.Sleep(rand.N(2 * time.Second))
			c.run(ctx)
		})
	}
	for _, c := range s.informers {
		wg.Go(func() { c.run(ctx) })
	}
	s.disturb(length)
	s.proxy.Heal()
	if err := s.settle(); err != nil {
		return nil, err
	}
	final := s.server.RV()
	if s.restored {
		time.Sleep(time.Minute) // RVs do not show what the clients have
		// A watch from an RV that is no longer reached lasts until its timeout.
		for n := 0; n < 900 && slices.ContainsFunc(s.informers, (*informed).waits); n++ {
			time.Sleep(time.Second)
		}
	}
	// At most 75 s: if the last fault ends a watch, and nothing is written afterwards, the first
	// bookmark proves the history, after a minute.
	for range 750 {
		if s.behind(final) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	wg.Wait()
	s.killGateway()
	s.proxy.Close()
	return s.history(final), nil
}

// settle starts a gateway if none is running.
func (s *simulation) settle() error {
	s.mu.Lock()
	gone := s.gateway == nil
	s.mu.Unlock()
	if gone {
		return s.startGateway()
	}
	return nil
}

// disturb writes for a while, sometimes in bursts, and performs kills.
func (s *simulation) disturb(length time.Duration) {
	var wg sync.WaitGroup
	defer wg.Wait()
	end := time.Now().Add(length)
	kills, over := context.WithCancel(context.Background())
	defer over() // before the wait
	wg.Go(func() {
		r := rand.New(rand.NewPCG(s.seed, 3))
		for time.Now().Before(end) || kills.Err() == nil {
			for range 1 + r.IntN(4)*r.IntN(4) {
				s.server.write()
			}
			pause := time.Duration(r.IntN(200)) * time.Millisecond
			if time.Now().After(end) {
				pause *= 10
			}
			time.Sleep(pause)
		}
	})
	s.backups = []backup{s.server.backup()}
	began := time.Now()
	for _, k := range s.profile.plan(s.rand, length) {
		for time.Until(began.Add(k.at)) > 0 {
			time.Sleep(min(time.Until(began.Add(k.at)), time.Duration(s.rand.Int64N(int64(3*time.Second)))))
			s.backups = append(s.backups, s.server.backup())
		}
		switch k.what {
		case "gateway":
			s.killGateway()
			time.Sleep(k.down)
			if err := s.startGateway(); err != nil {
				panic(err)
			}
		case "connections":
			s.proxy.CutAll()
		case "restore", "bumped restore":
			s.server.setDown(true)
			time.Sleep(k.down)
			s.server.restore(s.backups[s.rand.IntN(len(s.backups))], k.what == "bumped restore")
			s.restored = true
		case "watches":
			s.server.refuseWatches(true)
			time.Sleep(watchesFor * k.down)
			s.server.refuseWatches(false)
		case "etcd KILL": // the API server stays up and keeps its watch cache
			time.Sleep(k.down)
		case "kube-apiserver STOP":
			s.server.Compact(s.server.RV()) // like a compaction of etcd
		default:
			s.server.setDown(true)
			time.Sleep(k.down)
			s.server.setDown(false)
		}
	}
}

// watchless has times in which the API server answers lists, and no watch: some end in time
// for a watch to go on, in others the gateway and the informers have to list.
var watchless = profile{name: "no watches", without: []faultproxy.Name{faultproxy.Regress},
	kills: []string{"watches", "watches", "watches", "gateway", "kube-apiserver STOP", "connections"}}

// watchesFor is how much longer than other kills those of watches last.
const watchesFor = 100

func (s *simulation) behind(final uint64) int {
	s.server.mu.Lock()
	t := s.server.truth
	s.server.mu.Unlock()
	h := &history{truths: map[string]*truth{"configmaps": &t}, final: map[string]uint64{"configmaps": final}}
	all := slices.Clone(s.clients)
	for _, c := range s.informers {
		_, subscriber := c.clients()
		all = append(all, subscriber)
	}
	behind, _ := h.behind(all)
	return behind
}

func (s *simulation) makeClients() {
	s.texts.all = map[string]string{}
	sels := []selector{newSelector("", "", ""), newSelector("", "tier=red", ""), newSelector("a", "tier!=blue", ""), newSelector("", "", "metadata.name=a1")}
	for i := range 10 {
		c := &client{
			name: fmt.Sprintf("%02d", i), base: "http://127.0.0.1", resource: "configmaps", path: "/api/v1/configmaps",
			sel: sels[s.rand.IntN(len(sels))], start: []string{byList, byList0, byPages, byWatchList, byWatch0, byNow}[s.rand.IntN(6)],
			timeout: time.Duration(1+s.rand.IntN(40)) * time.Second, texts: &s.texts,
			http: &http.Client{Transport: local{handler: s, buffer: 1 << s.rand.IntN(16), life: s.life()}},
		}
		c.again = c.start == byNow || s.rand.IntN(8) == 0
		c.bookmarks = c.start == byWatchList || c.start == byWatch0 || s.rand.IntN(2) == 0
		if s.rand.IntN(4) == 0 {
			c.slow = time.Duration(s.rand.IntN(30)) * time.Millisecond
		}
		if s.rand.IntN(3) == 0 {
			c.nap = time.Duration(s.rand.IntN(8000)) * time.Millisecond
		}
		if i == 9 {
			c.direct, c.http = true, &http.Client{Transport: local{handler: s.server, buffer: 1 << 10}}
		}
		s.clients = append(s.clients, c)
	}
	s.informers = []*informed{
		newInformed("informer", localSource(local{handler: s, buffer: 1 << s.rand.IntN(16), life: s.life()}), false, &s.texts),
		newInformed("informer of the API server", localSource(local{handler: s.server, buffer: 1 << 10}), true, &s.texts),
	}
}

func localSource(l local) *informer.Source {
	return informer.NewSource(&url.URL{Scheme: "http", Host: "127.0.0.1"}, l)
}

func (s *simulation) history(final uint64) *history {
	h := &history{
		truths: map[string]*truth{"configmaps": &s.server.truth}, clients: s.clients, acks: s.server.acks,
		final: map[string]uint64{"configmaps": final}, whole: s.profile.whole, recorded: map[string][]gap{"configmaps": s.gaps},
	}
	var logs []string
	for _, l := range s.logs {
		logs = append(logs, l.String())
	}
	h.epochs, h.whole = epochs(logs), h.whole && !unproven(logs)
	for _, span := range s.proxy.Stale() {
		h.stale = append(h.stale, timeSpan{span.From, span.To})
	}
	for _, c := range s.informers {
		h.clients = append(h.clients, c.judged(h)...)
	}
	return h
}

// TestSimulation runs WATCHKEEPER_SIMULATIONS rounds (30) of half a minute in
// virtual time, from WATCHKEEPER_SIMULATION_SEED on.
// WATCHKEEPER_SIMULATION_PROFILE is the name of their profile (random).
func TestSimulation(t *testing.T) {
	n := clustertest.FromEnv(t, "WATCHKEEPER_SIMULATIONS", 30)
	seed := clustertest.FromEnv(t, "WATCHKEEPER_SIMULATION_SEED", rand.Uint64N(1<<32))
	only := os.Getenv("WATCHKEEPER_SIMULATION_PROFILE")
	t.Logf("WATCHKEEPER_SIMULATION_SEED=%d, %d simulations", seed, n)
	failed, requests, events, gaps, expired := 0, 0, 0, 0, 0
	for range n {
		if failed == 3 {
			break
		}
		var found []violation
		var h *history
		s := &simulation{seed: seed, rand: rand.New(rand.NewPCG(seed, 0))}
		all := append(slices.Clip(profiles), restores, restores, watchless)
		s.profile = all[s.rand.IntN(len(all))]
		if i := slices.IndexFunc(all, func(p profile) bool { return p.name == only }); i >= 0 {
			s.profile = all[i]
		}
		ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var err error
				if h, err = s.run(30 * time.Second); err != nil {
					t.Fatal(err)
				}
				found = judge(h)
			})
			for _, v := range found[:min(6, len(found))] {
				t.Errorf("%.1500s", v)
			}
			if len(found) > 0 {
				keepSimulation(t, s, h, found)
			}
		})
		for _, c := range h.clients {
			requests += len(c.exchanges)
			for _, x := range c.exchanges {
				events += len(x.Items) + len(x.Events)
				if x.Error == 410 {
					expired++
				}
			}
		}
		for _, e := range h.epochs["configmaps"] {
			gaps += len(e.Gaps)
		}
		if !ok {
			failed++
		}
		seed++
	}
	t.Logf("%d requests, %d events, %d gaps, %d times 410", requests, events, gaps, expired)
}

func keepSimulation(t *testing.T, s *simulation, h *history, all []violation) {
	t.Helper()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("watchkeeper-simulation-%d", s.seed))
	var log strings.Builder
	for _, l := range s.logs {
		log.WriteString(l.String() + "--- ended\n")
	}
	var text strings.Builder
	for _, v := range all {
		fmt.Fprintln(&text, v)
	}
	for _, err := range []error{
		os.MkdirAll(dir, 0o755), h.dump(dir), s.proxy.Dump(filepath.Join(dir, "faults.txt")),
		os.WriteFile(filepath.Join(dir, "gateway.log"), []byte(log.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "violations.txt"), []byte(text.String()), 0o644),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	t.Errorf("%s: %d violations; repeat with WATCHKEEPER_SIMULATIONS=1 WATCHKEEPER_SIMULATION_SEED=%d; the histories are in %s", s.profile.name, len(all), s.seed, dir)
}
