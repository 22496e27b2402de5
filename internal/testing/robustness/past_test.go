// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/faultproxy"
)

// How much is read in each of the phases of TestPast.
const (
	pastLists   = 25 // RVs, each read on the ordinary path and below /at/
	pastTimes   = 8
	pastObjects = 8
	pastWatches = 10
	pastTables  = 5 // from the API server, to compare with
)

// A pastRun is a recording gateway, and the expected content of its history.
type pastRun struct {
	t      *testing.T
	seed   uint64
	rand   *rand.Rand
	phase  time.Duration // of churn
	dir    string        // the gateway's --data-dir
	round  *round        // cluster, writers and truths
	etcd   *etcd
	direct *client // of the API server, for Tables

	reads     []*pastRead
	tables    []directTable
	downtimes []downtime

	watches     []*client
	watchCtx    context.Context // ends when the watches are judged
	stopWatches context.CancelFunc
	watching    sync.WaitGroup

	mu    sync.Mutex     // guards what follows
	lists map[string]int // lists by the gateway at the API server, by resource
}

// A directTable is a Table that the API server returned as its newest state.
type directTable struct {
	res   resource
	sel   selector
	rv    uint64
	cells [][]any
}

// TestPast records a churning control plane and compares reads of the past with
// etcd's own history: across kills of the gateway, of which the last hides a
// compaction from it, and after retention has removed a part.
//
// WATCHKEEPER_PAST_SECONDS is the time of churn in each phase (4),
// WATCHKEEPER_PAST_SEED the seed of all random choices (random).
func TestPast(t *testing.T) {
	clustertest.SkipShort(t)
	seconds := clustertest.FromEnv(t, "WATCHKEEPER_PAST_SECONDS", 4)
	seed := clustertest.FromEnv(t, "WATCHKEEPER_PAST_SEED", rand.Uint64N(1<<32))
	t.Logf("WATCHKEEPER_PAST_SEED=%d WATCHKEEPER_PAST_SECONDS=%d", seed, seconds)
	c, err := theCluster()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("watchkeeper-past-%d-", seed))
	if err != nil {
		t.Fatal(err)
	}
	r := &pastRun{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), phase: time.Duration(seconds) * time.Second, dir: dir, lists: map[string]int{},
		round: &round{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), cluster: c, profile: profile{name: "past"}, recorders: map[string]*recorder{}},
	}
	if err := r.run(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("repeat with WATCHKEEPER_PAST_SEED=%d WATCHKEEPER_PAST_SECONDS=%d; the gateway's data and logs are in %s", seed, seconds, dir)
		logs := r.round.logs
		if r.round.gateway != nil {
			logs = append(logs, r.round.gateway.Log())
		}
		text := strings.Join(logs, "--- ended\n")
		if err := os.WriteFile(filepath.Join(dir, "gateway.log"), []byte(text), 0o644); err != nil {
			t.Error(err)
		}
		t.Logf("the end of the logs:\n%s", text[max(0, len(text)-8000):])
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// run runs all phases.
func (r *pastRun) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	r.watchCtx, r.stopWatches = context.WithCancel(ctx)
	defer r.watching.Wait()
	defer r.stopWatches()
	if err := r.start(ctx, &wg); err != nil {
		return err
	}
	defer r.round.proxy.Close()
	defer func() { r.round.gateway.Kill() }()
	defer r.deleteNamespaces()

	writerCtx, stopWriters := context.WithCancel(ctx)
	defer stopWriters()
	for _, w := range r.round.writers {
		wg.Go(func() { w.run(writerCtx) })
	}
	for i, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"recorded", func(context.Context) error { return nil }},
		{"killed", r.killed},
		{"killed again", r.killed},
		{"compacted", r.compacted},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := r.live(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		// No client watches widgets before the third phase, so they are recorded
		// without a timeline.
		if err := r.read(ctx, resources[:min(len(resources), 2+i/2)]); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		r.t.Logf("%s: %v", step.name, time.Since(began).Round(time.Second/10))
	}
	stopWriters()
	if err := r.watched(ctx); err != nil {
		return err
	}
	if err := r.retained(ctx); err != nil {
		return fmt.Errorf("retained: %w", err)
	}
	return r.verdict(ctx)
}

// start starts everything but the writers, and waits until every resource is
// recorded.
func (r *pastRun) start(ctx context.Context, wg *sync.WaitGroup) (err error) {
	for _, suffix := range []string{"a", "b"} {
		name := fmt.Sprintf("p%x-%s", r.seed, suffix)
		r.round.namespaces = append(r.round.namespaces, name)
		if err := kubectl(r.round.cluster, "create", "namespace", name); err != nil {
			return err
		}
	}
	for _, name := range r.round.namespaces { // Pods need it
		if err := kubectl(r.round.cluster, "wait", "--for=create", "--timeout="+clusterTimeout.String(), "-n", name, "serviceaccount/default"); err != nil {
			return err
		}
	}
	if r.etcd, err = newEtcd(r.round.cluster); err != nil {
		return err
	}
	for _, res := range resources {
		if r.round.recorders[res.name], err = r.etcd.record(ctx, wg, res.prefix); err != nil {
			return err
		}
	}
	http, base, err := r.round.cluster.Client()
	if err != nil {
		return err
	}
	r.direct = &client{http: http, base: base, texts: &r.round.texts, name: "direct"}
	r.round.texts.all = map[string]string{}
	for i, res := range resources {
		r.round.writers = append(r.round.writers, &writer{
			resource: res.name, path: res.path, kind: res.kind, namespaces: r.round.namespaces,
			names: 8, pause: 90 * time.Millisecond, hands: []int{3, 2, 2}[i], seed: r.seed + uint64(i)<<40, http: http, base: base,
		})
	}
	// These exist before the recording, and never change again.
	if err := r.writeFixed(ctx, "before"); err != nil {
		return err
	}
	r.round.proxy, err = faultproxy.Start(faultproxy.Options{Upstream: r.round.cluster.Config, Seed: r.seed, TLS: r.rand.IntN(2) == 0, Draw: r.count})
	if err != nil {
		return err
	}
	if err := r.startGateway(); err != nil {
		r.round.proxy.Close()
		return err
	}
	if err := r.recording(ctx); err != nil {
		return err
	}
	return r.writeFixed(ctx, "since")
}

// writeFixed creates objects that never change.
func (r *pastRun) writeFixed(ctx context.Context, name string) error {
	for _, w := range r.round.writers {
		for i := range 5 {
			if _, err := w.create(ctx, r.round.namespaces[i%2], fmt.Sprintf("fixed-%s-%d", name, i), tiers[i%3], i, 100*i); err != nil {
				return err
			}
		}
	}
	return nil
}

// count counts the gateway's own lists at the API server. It injects no fault.
func (r *pastRun) count(resource string, kind faultproxy.Kind, _ int) faultproxy.Fault {
	if kind == faultproxy.List || kind == faultproxy.WatchList {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lists[resource]++
	}
	return faultproxy.Fault{Name: faultproxy.None}
}

// listed returns how many lists of recorded resources there were.
func (r *pastRun) listed() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, res := range resources {
		n += r.lists[res.name]
	}
	return n
}

// startGateway starts a recording gateway. Its memory is small, so that the past
// is read from the disk.
func (r *pastRun) startGateway(flags ...string) error {
	kubeconfig := filepath.Join(r.round.cluster.Dir, fmt.Sprintf("past-%x.kubeconfig", r.seed))
	if err := r.round.proxy.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	var names []string
	for _, res := range resources {
		name := res.name
		if res.name == "widgets" {
			name += ".robust.watchkeeper.dev"
		}
		names = append(names, name)
	}
	g, err := startGateway(r.t, r.round.cluster, append([]string{
		"--kubeconfig", kubeconfig, "--data-dir", filepath.Join(r.dir, "data"), "--record", strings.Join(names, ","), "--window-bytes", "1Mi", "--window-age", "2s",
	}, flags...)...)
	if err == nil {
		r.round.gateway = g
	}
	return err
}

// recording waits until the recording of every resource has begun.
func (r *pastRun) recording(ctx context.Context) error {
	var all map[string]known
	var err error
	for deadline := time.Now().Add(clusterTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if all, err = r.reader().index(ctx); err == nil && len(all) == len(resources) {
			return nil
		}
	}
	return fmt.Errorf("only recorded %v: %w", all, errors.Join(err, os.ErrDeadlineExceeded))
}

func (r *pastRun) reader() *pastReader {
	return &pastReader{http: r.round.gateway.http(false), base: r.round.gateway.URL, texts: &r.round.texts}
}

// live lets the phase's time pass. Meanwhile it gets some Tables from the API
// server.
func (r *pastRun) live(ctx context.Context) error {
	end := time.Now().Add(r.phase)
	for i := range pastTables {
		res := resources[i%len(resources)]
		sel := r.selector(res)
		c := &client{http: r.direct.http, base: r.direct.base, texts: r.direct.texts, name: "direct", path: res.path, sel: sel}
		x := &exchange{}
		t, err := c.table(ctx, x, map[string][]string{})
		if err != nil {
			return err
		}
		r.tables = append(r.tables, directTable{res, sel, x.RV, t.steady()})
		time.Sleep(time.Until(end) / time.Duration(pastTables-i))
	}
	return nil
}

// killed kills and restarts the gateway amid the writes: it resumes without a
// list.
func (r *pastRun) killed(context.Context) error {
	before, gaps := r.listed(), 0
	from := time.Now()
	r.round.gateway.Kill()
	r.round.logs = append(r.round.logs, r.round.gateway.Log())
	time.Sleep(upTo(r.rand, 2*time.Second))
	if err := r.round.gateway.Restart(); err != nil {
		return err
	}
	r.downtimes = append(r.downtimes, downtime{from, time.Now()})
	marks, err := r.round.mark(context.Background(), fmt.Sprintf("killed-%d", len(r.downtimes)))
	if err != nil {
		return err
	}
	all, err := r.reached(marks)
	if err != nil {
		return err
	}
	down := r.downtimes[len(r.downtimes)-1]
	for name, k := range all {
		gaps += len(k.Gaps)
		if !slices.ContainsFunc(k.Late, func(g pastGap) bool {
			return !g.Since.After(down.from.Add(skew)) && !g.Since.Before(down.from.Add(-observed-r.phase)) && !g.Until.Before(down.from)
		}) {
			r.t.Errorf("%s: no late gap begins at the kill at %v: %v", name, down.from, k.Late)
		}
	}
	if n := r.listed() - before; n > 0 {
		r.t.Errorf("after a kill alone, the gateway listed %d times upstream", n)
	}
	if gaps > 0 {
		r.t.Errorf("after a kill alone, there are gaps in %v", all)
	}
	return nil
}

// reached waits until the recording has reached the marks.
func (r *pastRun) reached(marks map[string]uint64) (all map[string]known, err error) {
	for deadline := time.Now().Add(clusterTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if all, err = r.reader().index(context.Background()); err != nil {
			continue
		}
		done := true
		for name, rv := range marks {
			done = done && all[name].To >= rv
		}
		if done {
			return all, nil
		}
	}
	return all, fmt.Errorf("want a recording up to %v, got %v: %w", marks, all, errors.Join(err, os.ErrDeadlineExceeded))
}

// compacted compacts upstream what the gateway missed, which leaves a gap.
func (r *pastRun) compacted(ctx context.Context) error {
	before, err := r.reader().index(ctx)
	if err != nil {
		return err
	}
	from := time.Now()
	r.round.gateway.Kill()
	r.round.logs = append(r.round.logs, r.round.gateway.Log())
	time.Sleep(2 * time.Second)
	// Every recorded resource changes meanwhile, once before the compacted RV and
	// once after it.
	marks, err := r.round.mark(ctx, "hidden")
	if err != nil {
		return err
	}
	time.Sleep(time.Second)
	if _, err := r.round.mark(ctx, "hidden-too"); err != nil {
		return err
	}
	rv := uint64(0)
	for _, mark := range marks {
		rv = max(rv, mark)
	}
	if err := r.etcd.compact(ctx, rv); err != nil {
		return err
	}
	// The API servers have the compacted events in memory until they are killed.
	if err := r.round.cluster.SignalAPIServers("KILL"); err != nil {
		return err
	}
	if err := r.round.cluster.StartAPIServers(); err != nil {
		return err
	}
	if err := r.round.gateway.Restart(); err != nil {
		return err
	}
	if _, err := r.reached(marks); err != nil {
		return err
	}
	after, err := r.round.mark(ctx, "after") // the gateway has listed before
	if err != nil {
		return err
	}
	r.downtimes = append(r.downtimes, downtime{from, time.Now()})
	all, err := r.reached(after)
	if err != nil {
		return err
	}
	for _, res := range resources {
		k := all[res.name]
		if len(k.Gaps) != 1 {
			r.t.Errorf("%s: compacted while the gateway was down, got gaps %v", res.name, k.Gaps)
			continue
		}
		g := k.Gaps[0]
		if g.From < before[res.name].To || g.From >= marks[res.name] || g.To < marks[res.name] || g.To > after[res.name] {
			r.t.Errorf("%s: the gap is %v; the head before the kill was %d, RV %d is hidden, RV %d is not", res.name, g, before[res.name].To, marks[res.name], after[res.name])
		}
		if g.Since.After(from.Add(skew)) || g.Since.Before(from.Add(-observed-r.phase)) || g.Until.Before(from) || g.Until.After(time.Now().Add(skew)) {
			r.t.Errorf("%s: the gap lasts from %v to %v; killed at %v", res.name, g.Since, g.Until, from)
		}
	}
	return nil
}

// selector draws a selector.
func (r *pastRun) selector(res resource) selector {
	a, b := r.round.namespaces[0], r.round.namespaces[1]
	all := []selector{
		newSelector("", "", ""), newSelector(a, "", ""), newSelector("", "tier=red", ""), newSelector(b, "tier in (red,blue),robust", ""),
		newSelector(a, "tier!=green", ""), newSelector("", "", "metadata.name=a-1"), newSelector("", "tier notin (green)", "metadata.namespace="+b),
	}
	if res.name == "pods" {
		all = append(all, newSelector("", "", "spec.nodeName=node-1"), newSelector("", "tier!=green", "status.phase!=Running"))
	}
	return all[r.rand.IntN(len(all))]
}

// read reads at random moments of the past, and begins watches of the resources
// in watched from random moments.
func (r *pastRun) read(ctx context.Context, watched []resource) error {
	marks, err := r.round.mark(ctx, fmt.Sprintf("read-%d", len(r.reads)))
	if err != nil {
		return err
	}
	before, err := r.reached(marks)
	if err != nil {
		return err
	}
	p := r.reader()
	begin := len(r.reads)
	if err := r.readLists(ctx, p, before, marks); err != nil {
		return err
	}
	for i := range pastTimes {
		res := resources[i%len(resources)]
		sel := r.selector(res)
		since := before[res.name].Since.Add(-time.Second)
		read := &pastRead{When: since.Add(upTo(r.rand, time.Since(since))).Truncate(time.Millisecond), At: true, Before: before[res.name]}
		if err := p.list(ctx, res, sel, read, r.form(sel)); err != nil {
			return err
		}
		r.reads = append(r.reads, read)
	}
	for i := range pastObjects {
		res := resources[i%len(resources)]
		name := fmt.Sprintf("%c-%d", 'a'+r.rand.IntN(3), r.rand.IntN(8))
		if i%5 == 0 {
			name = "fixed-before-2"
		}
		read := &pastRead{Asked: r.moment(before[res.name], marks[res.name]), At: true, Before: before[res.name], Name: r.round.namespaces[r.rand.IntN(2)] + "/" + name}
		if err := p.get(ctx, res, read); err != nil {
			return err
		}
		read.Resource = res.name
		r.reads = append(r.reads, read)
	}
	if err := r.readTables(ctx, p, before); err != nil {
		return err
	}
	r.watchNothing(ctx, p, before)
	after, err := p.index(ctx)
	if err != nil {
		return err
	}
	for _, read := range r.reads[begin:] {
		read.After = after[read.Resource]
	}
	for i := range pastWatches {
		if len(watched) > 0 {
			res := watched[i%len(watched)]
			r.watch(p, res, r.known(after[res.name], marks[res.name]), i%3 == 0)
		}
	}
	return nil
}

// readLists lists at random RVs.
func (r *pastRun) readLists(ctx context.Context, p *pastReader, before map[string]known, marks map[string]uint64) error {
	for i := range pastLists {
		res := resources[i%len(resources)]
		k, sel := before[res.name], r.selector(res)
		rv := r.moment(k, marks[res.name])
		for _, at := range []bool{false, true} {
			read := &pastRead{Asked: rv, At: at, Before: k}
			if err := p.list(ctx, res, sel, read, r.form(sel)); err != nil {
				return err
			}
			r.reads = append(r.reads, read)
		}
	}
	return nil
}

// watchNothing begins watches from RVs that are not in the history.
func (r *pastRun) watchNothing(ctx context.Context, p *pastReader, before map[string]known) {
	for _, res := range resources {
		k := before[res.name]
		unknown := []uint64{k.From - 1}
		for _, g := range k.Gaps {
			if g.To > g.From+1 {
				unknown = append(unknown, g.From+1)
			}
		}
		for _, rv := range unknown {
			c := p.client("rv:"+strconv.FormatUint(rv, 10), "past-watch", res, r.selector(res))
			c.timeout = time.Second
			c.watch(ctx, resumed, rv)
			x := c.exchanges[0]
			if x.Error != 0 {
				x.Code = x.Error
			}
			r.reads = append(r.reads, &pastRead{exchange: x, Asked: rv, At: true, Before: k})
		}
	}
}

// readTables reads the Tables again that the API server returned.
func (r *pastRun) readTables(ctx context.Context, p *pastReader, before map[string]known) error {
	for _, t := range r.tables {
		read := &pastRead{Asked: t.rv, At: true, Before: before[t.res.name]}
		if err := p.list(ctx, t.res, t.sel, read, asTable); err != nil {
			return err
		}
		if read.Code == http.StatusOK {
			read.DirectCells = t.cells
		}
		r.reads = append(r.reads, read)
	}
	return nil
}

// form draws the form of a list request. If a field selector names the namespace,
// pages are not supported below /at/, and overlap at the API server.
func (r *pastRun) form(sel selector) form {
	f := []form{whole, asTable, byPage}
	if strings.Contains(sel.Fields, "metadata.namespace") {
		f = f[:2]
	}
	return f[r.rand.IntN(len(f))]
}

// moment draws an RV up to a mark: sometimes one before the retained span, or
// inside a gap.
func (r *pastRun) moment(k known, mark uint64) uint64 {
	switch n := r.rand.IntN(12); {
	case n == 0:
		return k.From - min(k.From-1, 1+r.rand.Uint64N(10))
	case n == 1 && len(k.Gaps) > 0:
		if g := k.Gaps[0]; g.To > g.From+1 {
			return g.From + 1 + r.rand.Uint64N(g.To-g.From-1)
		}
	case n == 2 && len(k.Gaps) > 0: // the ends of a gap are readable
		return []uint64{k.Gaps[0].From, k.Gaps[0].To}[r.rand.IntN(2)]
	case n == 3:
		return k.From
	}
	return k.From + r.rand.Uint64N(mark-k.From+1)
}

// known draws an RV that is retained.
func (r *pastRun) known(k known, mark uint64) uint64 {
	for {
		rv := k.From + r.rand.Uint64N(mark-k.From+1)
		if _, hidden := k.within(rv); !hidden {
			return rv
		}
	}
}

// watch begins a watch from an RV, below /at/ if at is set. It is resumed until
// the end of the test, whatever happens to the gateway.
func (r *pastRun) watch(p *pastReader, res resource, rv uint64, at bool) {
	when := ""
	if at {
		when = "rv:" + strconv.FormatUint(rv, 10)
	}
	c := p.client(when, fmt.Sprintf("watch-%d-%s-%d", len(r.watches), res.name, rv), res, r.selector(res))
	c.http = r.round.gateway.http(false)
	c.bookmarks = r.rand.IntN(4) > 0
	c.timeout = []time.Duration{300 * time.Second, 7 * time.Second}[r.rand.IntN(2)]
	c.move(rv, true)
	r.watches = append(r.watches, c)
	r.watching.Go(func() {
		for r.watchCtx.Err() == nil {
			rv, ok := c.place()
			if !ok {
				return // it got 410, which is judged later
			}
			if !c.watch(r.watchCtx, resumed, rv) {
				time.Sleep(200 * time.Millisecond)
			}
		}
	})
}

// watched waits until all watches have received everything, and judges them.
func (r *pastRun) watched(ctx context.Context) error {
	final, err := r.round.mark(ctx, "end")
	if err != nil {
		return err
	}
	known, err := r.reached(final)
	if err != nil {
		return err
	}
	h := &history{epochs: map[string][]epoch{}, clients: r.watches, final: final, whole: true}
	for name, k := range known {
		e := epoch{}
		for _, g := range k.Gaps {
			e.Gaps = append(e.Gaps, g.gap)
		}
		h.epochs[name] = []epoch{e}
	}
	if h.truths, err = r.truths(final); err != nil {
		return err
	}
	var since time.Time // since when no event is due
	for deadline := time.Now().Add(settle); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		behind, due := h.behind(r.watches)
		for _, c := range r.watches {
			if _, follows := c.place(); !follows {
				behind, due = behind-1, due-1 // it got 410
			}
		}
		switch {
		case due > 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		// A watch without bookmarks may never get events from inside a gap.
		if behind <= 0 || !since.IsZero() && time.Since(since) > overGap {
			break
		}
	}
	time.Sleep(500 * time.Millisecond) // for excess events
	r.stopWatches()
	r.watching.Wait()
	last, err := r.round.mark(ctx, "last")
	if err != nil {
		return err
	}
	if h.truths, err = r.truths(last); err != nil {
		return err
	}
	exchanges, events, expired := 0, 0, 0
	for _, c := range r.watches {
		if c.expiredInGap(known[c.resource].Gaps) {
			expired++
		}
		exchanges += len(c.exchanges)
		for _, x := range c.exchanges {
			events += len(x.Events)
		}
	}
	all := judgePastWatches(h)
	for _, v := range all[:min(10, len(all))] {
		r.t.Errorf("%.2000s", v.String())
	}
	r.t.Logf("%d watches from past RVs: %d requests, %d events, %d violations; %d resumed from inside a gap", len(r.watches), exchanges, events, len(all), expired)
	if len(all) > 0 {
		return h.dump(r.dir)
	}
	return nil
}

// retained starts a gateway whose retention removes the older part of the
// history, kills it in between, and reads the rest.
func (r *pastRun) retained(ctx context.Context) error {
	before, err := r.reader().index(ctx)
	if err != nil {
		return err
	}
	r.round.gateway.Kill()
	r.round.logs = append(r.round.logs, r.round.gateway.Log())
	from := time.Now()
	oldest := before["pods"].Since
	age := time.Since(oldest) / 3
	lists := r.listed()
	for range 2 {
		if err := r.startGateway("--history-max-age", age.Round(time.Second).String()); err != nil {
			return err
		}
		r.downtimes = append(r.downtimes, downtime{from, time.Now()})
		if err := r.forgotten(ctx, before); err != nil {
			return err
		}
		if err := r.read(ctx, nil); err != nil {
			return err
		}
		from = time.Now()
		r.round.gateway.Kill()
		r.round.logs = append(r.round.logs, r.round.gateway.Log())
	}
	if n := r.listed() - lists; n > 0 {
		r.t.Errorf("with another retention, the gateway listed %d times upstream", n)
	}
	return nil
}

// forgotten waits until retention has moved the oldest state of each resource.
func (r *pastRun) forgotten(ctx context.Context, before map[string]known) error {
	for deadline := time.Now().Add(clusterTimeout); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		all, err := r.reader().index(ctx)
		if err != nil {
			return err
		}
		moved := 0
		for name, k := range all {
			if k.From > before[name].From {
				moved++
			}
		}
		if moved == len(resources) {
			return nil
		}
	}
	return fmt.Errorf("retention removed nothing: %w", os.ErrDeadlineExceeded)
}

// truths returns the truth of each resource, up to the marks.
func (r *pastRun) truths(marks map[string]uint64) (map[string]*truth, error) {
	all := map[string]*truth{}
	for name, rec := range r.round.recorders {
		var err error
		if all[name], err = rec.result(marks[name]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// verdict judges all reads.
func (r *pastRun) verdict(ctx context.Context) error {
	marks, err := r.round.mark(ctx, "verdict")
	if err != nil {
		return err
	}
	truths, err := r.truths(marks)
	if err != nil {
		return err
	}
	wrong, refused, exact := 0, 0, 0
	for _, read := range r.reads {
		switch read.Code {
		case http.StatusOK:
			exact++
		case http.StatusGone:
			refused++
		}
		what := truths[read.Resource].judgePast(read, r.downtimes)
		if what == "" {
			continue
		}
		if wrong++; wrong <= 10 {
			r.t.Errorf("%v: %.2000s", read, what)
		}
	}
	versions := 0
	for _, t := range truths {
		versions += len(t.versions)
	}
	r.t.Logf("%d versions; %d reads of the past: %d answered, %d refused, %d wrong", versions, len(r.reads), exact, refused, wrong)
	return nil
}

func (r *pastRun) deleteNamespaces() {
	for _, name := range r.round.namespaces {
		if err := kubectl(r.round.cluster, "delete", "namespace", name, "--wait=false"); err != nil {
			r.t.Error(err)
		}
	}
}
