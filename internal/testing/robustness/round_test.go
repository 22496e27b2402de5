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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/faultproxy"
)

// clusterTimeout is how long the cluster may take for what does not depend on the
// gateway: the machine may be busy.
const clusterTimeout = 2 * time.Minute

// settle is how long it may take, after the faults have ended, until all clients
// have received everything.
const settle = 3 * time.Minute

// overGap is how long a round waits for a client that may be complete: a gap hid
// the events that it lacks, or the difference is on its way.
const overGap = 3 * time.Second

// A resource of the test.
type resource struct{ name, path, kind, prefix string }

var resources = []resource{
	{"configmaps", "/api/v1/configmaps", `"kind":"ConfigMap","apiVersion":"v1"`, "/registry/configmaps/"},
	{"pods", "/api/v1/pods", `"kind":"Pod","apiVersion":"v1"`, "/registry/pods/"},
	{"widgets", "/apis/robust.watchkeeper.dev/v1/widgets", `"kind":"Widget","apiVersion":"robust.watchkeeper.dev/v1"`, "/registry/robust.watchkeeper.dev/widgets/"},
}

// A round is one run of everything, drawn from one seed.
type round struct {
	t       *testing.T
	seed    uint64
	rand    *rand.Rand
	profile profile
	length  time.Duration // of the faults

	cluster    *clustertest.Cluster
	apiServers []string
	etcd       *etcd
	proxy      *faultproxy.Proxy
	gateway    *realGateway
	namespaces []string
	clients    []*client
	informers  []*informed
	browser    *browser
	writers    []*writer
	recorders  map[string]*recorder
	logs       []string // of gateways that have ended
	kills      []kill   // those that happened
	backups    []backupFile
	restored   []time.Time // when etcd was restored
	unready    []timeSpan  // when an API server was down, or not ready
	texts      texts

	// complete are clients that have done what the clients and the browser had done when
	// all were complete: later, one may have to list again, and be stopped before it does.
	complete []*client
}

// run runs a round and returns its history.
func (r *round) run() (*history, error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	if err := r.start(ctx, &wg); err != nil {
		return nil, err
	}
	defer r.proxy.Close()
	defer r.gateway.Kill()
	if err := r.makeInformers(); err != nil {
		return nil, err
	}

	clientCtx, stopClients := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stopClients()
	for _, c := range r.clients {
		clients.Go(func() {
			select { // the clients start one after another
			case <-time.After(rand.N(3 * time.Second)):
			case <-clientCtx.Done():
			}
			c.run(clientCtx)
		})
	}
	for _, c := range r.informers {
		clients.Go(func() { c.run(clientCtx) })
	}
	clients.Go(func() { r.browser.run(clientCtx) })
	writerCtx, stopWriters := context.WithCancel(ctx)
	defer stopWriters()
	var writers sync.WaitGroup
	for _, w := range r.writers {
		writers.Go(func() { w.run(writerCtx) })
	}
	if err := r.disturb(ctx, &wg); err != nil {
		return nil, err
	}
	r.proxy.Heal()
	stopWriters()
	writers.Wait()
	final, err := r.mark(ctx, "end")
	if err != nil {
		return nil, err
	}
	if err := r.await(final); err != nil {
		return nil, err
	}
	stopClients()
	clients.Wait()
	// What the clients have received since lies below these.
	last, err := r.mark(ctx, "last")
	if err != nil {
		return nil, err
	}
	return r.history(final, last)
}

// start starts everything but clients and writers.
func (r *round) start(ctx context.Context, wg *sync.WaitGroup) error {
	var err error
	for _, suffix := range []string{"a", "b"} {
		name := fmt.Sprintf("r%x-%s", r.seed, suffix)
		r.namespaces = append(r.namespaces, name)
		if err := kubectl(r.cluster, "create", "namespace", name); err != nil {
			return err
		}
	}
	for _, name := range r.namespaces { // Pods need it
		if err := kubectl(r.cluster, "wait", "--for=create", "--timeout="+clusterTimeout.String(), "-n", name, "serviceaccount/default"); err != nil {
			return err
		}
	}
	if r.etcd, err = newEtcd(r.cluster); err != nil {
		return err
	}
	r.recorders = map[string]*recorder{}
	for _, res := range resources {
		if r.recorders[res.name], err = r.etcd.record(ctx, wg, res.prefix); err != nil {
			return err
		}
	}
	r.proxy, err = faultproxy.Start(faultproxy.Options{
		Upstream: r.cluster.Config, Seed: r.seed, TLS: r.rand.IntN(2) == 0, Draw: r.profile.draw(r.seed),
	})
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(r.cluster.Dir, fmt.Sprintf("faults-%x.kubeconfig", r.seed))
	if err := r.proxy.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	if r.gateway, err = startGateway(r.t, r.cluster, "--kubeconfig", kubeconfig); err != nil {
		r.proxy.Close()
		return err
	}
	direct, base, err := r.cluster.Client()
	if err != nil {
		return err
	}
	r.texts.all = map[string]string{}
	r.makeClients(direct, base)
	for i, res := range resources {
		r.writers = append(r.writers, &writer{
			resource: res.name, path: res.path, kind: res.kind, namespaces: r.namespaces,
			names: 8, pause: 60 * time.Millisecond, hands: []int{3, 2, 2}[i], seed: r.seed + uint64(i)<<40,
			http: direct, base: base,
		})
	}
	return r.catchUp(ctx, direct)
}

// catchUp waits until the watch caches of all API servers have reached the round: a list at
// RV 0 may have an RV from before it if the resource did not change.
func (r *round) catchUp(ctx context.Context, direct *http.Client) error {
	marks, err := r.mark(ctx, "start")
	if err != nil {
		return err
	}
	bases, err := r.cluster.APIServers()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	for _, base := range bases {
		for _, res := range resources {
			url := fmt.Sprintf("%s%s?resourceVersionMatch=NotOlderThan&resourceVersion=%d", base, res.path, marks[res.name])
			if err := answered(ctx, direct, url); err != nil {
				return err
			}
		}
	}
	return nil
}

// answered requests a URL until it is answered with 200: an API server times out.
func answered(ctx context.Context, client *http.Client, url string) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
	}
}

// makeClients makes clients of all kinds, a few of them of the API server itself.
func (r *round) makeClients(direct *http.Client, base string) {
	type kind struct {
		start     string
		bookmarks bool
		timeout   time.Duration
		slow      time.Duration
		again     bool
	}
	const s = time.Second
	a, b := r.namespaces[0], r.namespaces[1]
	selectors := map[string][]selector{
		"configmaps": {newSelector("", "", ""), newSelector("", "tier=red", ""), newSelector(a, "tier in (red,blue),robust", ""), newSelector("", "", "metadata.name=a-1"), newSelector(a, "", "")},
		"pods":       {newSelector("", "", ""), newSelector("", "", "spec.nodeName=node-1"), newSelector("", "tier!=green", "status.phase!=Running"), newSelector(a, "tier=red", "")},
		"widgets":    {newSelector("", "", ""), newSelector(a, "tier notin (green)", ""), newSelector(b, "tier=blue", "")},
	}
	kinds := []kind{
		{byList, true, 300 * s, 0, false}, {byList, true, 5 * s, 0, false}, {byList0, false, 300 * s, 0, false},
		{byWatchList, true, 300 * s, 0, false}, {byWatchList, true, 4 * s, 0, true}, {byWatch0, true, 300 * s, 0, false},
		{byPages, true, 10 * s, 0, false}, {byList, false, 20 * s, 4 * time.Millisecond, false}, {byNow, true, 6 * s, 0, true},
	}
	add := func(res resource, sel selector, k kind, isDirect bool) {
		where, url, conn := "gateway", r.gateway.URL, r.gateway.http(k.slow > 0)
		if isDirect {
			where, url, conn = "direct", base, direct
		}
		r.clients = append(r.clients, &client{
			name: fmt.Sprintf("%02d-%s-%s-%s", len(r.clients), where, res.name, k.start),
			http: conn, base: url, direct: isDirect, resource: res.name, path: res.path, sel: sel,
			start: k.start, bookmarks: k.bookmarks, timeout: k.timeout, slow: k.slow, again: k.again, texts: &r.texts,
		})
	}
	for i, res := range resources {
		for j, k := range kinds {
			sels := selectors[res.name]
			add(res, sels[(i+j)%len(sels)], k, false)
			if j%3 == i {
				add(res, sels[0], k, false)
			}
		}
		add(res, selectors[res.name][0], kinds[0], true)
		add(res, selectors[res.name][1], kinds[3], true)
	}
}

// mark has every writer write a last object, and returns their RVs.
func (r *round) mark(ctx context.Context, name string) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	marks := map[string]uint64{}
	for _, w := range r.writers {
		rv, err := w.mark(ctx, name)
		if err != nil {
			return nil, err
		}
		marks[w.resource] = rv
	}
	return marks, nil
}

// await waits until all clients have received everything that is due.
func (r *round) await(final map[string]uint64) error {
	now := &history{truths: map[string]*truth{}, final: final}
	var settled time.Time // since when no event is due except those that a gap may have hidden
	for deadline := time.Now().Add(settle); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		for name, rec := range r.recorders {
			var err error
			if now.truths[name], err = rec.result(final[name]); err != nil {
				return err
			}
		}
		now.epochs = epochs(append(r.logs, r.gateway.Log()))
		behind, due := now.behind(r.everyone())
		switch {
		case due > 0 || len(r.restored) > 0 && !r.agree(now): // after a restore, RVs do not show it
			settled = time.Time{}
		case behind > 0 && settled.IsZero():
			settled = time.Now()
		case (behind == 0 || time.Since(settled) > overGap) && r.agree(now):
			r.complete = slices.Clip(now.clients[:len(now.clients)-len(r.informers)])
			return nil
		}
	}
	return nil // the validators say which ones
}

// agree reports whether the clients hold what the API server has.
func (r *round) agree(now *history) bool {
	now.clients = nil
	for _, c := range r.everyone() {
		now.clients = append(now.clients, c.soFar())
	}
	return len(converging(now)) == 0
}

// behind returns how many clients lack events up to the end, and how many of
// them lack events that are due.
func (h *history) behind(clients []*client) (behind, due int) {
	for _, c := range clients {
		rv, synced := c.place()
		if c.again || synced && len(h.truths[c.resource].expected(c.sel, rv, h.final[c.resource])) == 0 {
			continue
		}
		_, isInGap := around(h.gaps(c), rv) // then it gets 410, and lists again
		if behind++; !synced || isInGap || len(h.due(c, rv)) > 0 {
			due++
		}
	}
	return behind, due
}

func (r *round) history(final, last map[string]uint64) (*history, error) {
	h := &history{truths: map[string]*truth{}, clients: r.complete, final: final, whole: r.profile.whole}
	if r.gateway.shared != nil {
		h.refusing = r.unready
	}
	if h.clients == nil {
		h.clients = append(r.clients, r.browser.clients()...)
	}
	for name, rec := range r.recorders {
		t, err := rec.result(last[name])
		if err != nil {
			return nil, err
		}
		h.truths[name] = t
	}
	logs := append(r.logs, r.gateway.Log())
	h.epochs, h.whole, h.revoked = epochs(logs), h.whole && !unproven(logs), revoked(logs)
	for _, c := range r.informers {
		h.clients = append(h.clients, c.judged(h)...)
	}
	for _, w := range r.writers {
		h.acks = append(h.acks, w.acks...)
	}
	h.acks = slices.DeleteFunc(h.acks, func(a ack) bool { // of which truth is unknown
		return slices.ContainsFunc(r.restored, func(at time.Time) bool { return a.sent.Before(at) && a.At.After(at) })
	})
	for _, s := range r.proxy.Stale() {
		h.stale = append(h.stale, timeSpan{s.From, s.To})
	}
	return h, nil
}

// keep writes the histories and logs of a failed round, and prints the folder.
func (r *round) keep(h *history, all []violation) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("watchkeeper-robustness-%d-", r.seed))
	if err == nil {
		err = h.dump(dir)
	}
	var b strings.Builder
	fmt.Fprintln(&b, r.profile.name, r.kills)
	for _, v := range all {
		fmt.Fprintln(&b, v)
	}
	err = errors.Join(err,
		r.proxy.Dump(filepath.Join(dir, "faults.txt")),
		os.WriteFile(filepath.Join(dir, "gateway.log"), []byte(strings.Join(append(r.logs, r.gateway.Log()), "--- killed\n")), 0o644),
		os.WriteFile(filepath.Join(dir, "violations.txt"), []byte(b.String()), 0o644))
	if err != nil {
		r.t.Error(err)
	}
	r.t.Logf("the histories are in %s", dir)
}
