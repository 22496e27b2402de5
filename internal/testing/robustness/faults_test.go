// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/faultproxy"
)

// A profile selects the faults of a round.
type profile struct {
	name string
	// without are the faults that it excludes.
	without []faultproxy.Name
	kills   []string
	// whole is set if no fault of the profile can make a gateway lose its history.
	whole bool
}

// lossy are the faults that may make a gateway relist.
var lossy = []faultproxy.Name{faultproxy.Gone, faultproxy.GoneWithin, faultproxy.Older, faultproxy.Regress, faultproxy.Garble,
	faultproxy.HTML, faultproxy.EndWithin, faultproxy.TruncateEnd, faultproxy.EarlyEnd, faultproxy.End}

// profiles are ordered so that of any three consecutive ones, one has nearly
// every fault.
var profiles = []profile{
	{name: "everything", kills: []string{"gateway", "kube-apiserver KILL", "etcd KILL", "kube-apiserver STOP", "kube-apiserver TERM", "connections"}},
	{name: "network", without: lossy, kills: []string{"connections"}, whole: true},
	{name: "kills", without: append([]faultproxy.Name{faultproxy.CutBetween, faultproxy.CutWithin, faultproxy.Stall, faultproxy.HalfOpen}, lossy...), kills: []string{"kube-apiserver KILL", "etcd KILL", "gateway", "kube-apiserver KILL"}},
	{name: "everything but the past", without: []faultproxy.Name{faultproxy.Regress}, kills: []string{"gateway", "kube-apiserver KILL", "etcd KILL", "kube-apiserver STOP", "connections"}},
	{name: "network and gateway", without: lossy, kills: []string{"gateway", "connections"}, whole: true},
}

// restores has restores of etcd, next to the faults. (The proxy's stale replica would mix the
// histories.)
var restores = profile{name: "restores", without: []faultproxy.Name{faultproxy.Regress},
	kills: []string{"restore", "bumped restore", "restore", "bumped restore", "gateway", "connections", "kube-apiserver KILL"}}

// draw returns the proxy's Draw function. It draws again if the profile excludes
// the fault: a stream without a fault would last to the end of the round.
func (p profile) draw(seed uint64) func(string, faultproxy.Kind, int) faultproxy.Fault {
	return func(resource string, kind faultproxy.Kind, n int) (f faultproxy.Fault) {
		for i := range 20 {
			f = faultproxy.Draw(seed, resource, kind, n+i<<32)
			if !slices.Contains(p.without, f.Name) {
				return f
			}
		}
		f.Name = faultproxy.None
		return f
	}
}

// A kill is a kill of a component, or an equivalent disturbance.
type kill struct {
	at   time.Duration // from the start of the faults
	what string        // a component and a signal
	down time.Duration
}

func (k kill) String() string { return fmt.Sprintf("%s after %v, for %v", k.what, k.at, k.down) }

// plan draws up to three kills.
func (p profile) plan(r *rand.Rand, length time.Duration) []kill {
	all := make([]kill, 1+r.IntN(3))
	for i := range all {
		all[i] = kill{
			at:   length/8 + upTo(r, length*3/4),
			what: p.kills[r.IntN(len(p.kills))],
			down: upTo(r, 2*time.Second),
		}
	}
	slices.SortFunc(all, func(a, b kill) int { return cmp.Compare(a.at, b.at) })
	return all
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// unproven reports whether a gateway took a list because it could not tell whether the
// API server was restored (the collection was empty, and no longer is), or because a
// definition may have changed: an API server that lags notices late that it is established.
func unproven(logs []string) bool {
	return slices.ContainsFunc(logs, func(log string) bool {
		return strings.Contains(log, "no event proves the history") || strings.Contains(log, "its definition may have changed")
	})
}

// revoked returns the lines of the gateways' logs about watches that ended because their
// right was not confirmed.
func revoked(logs []string) (lines []string) {
	for line := range strings.Lines(strings.Join(logs, "")) {
		if strings.Contains(line, `msg="watches end, because their right was not confirmed"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// epochs reads the epochs and their gaps from the logs of a round's gateways.
func epochs(logs []string) map[string][]epoch {
	all := map[string][]epoch{}
	for _, log := range logs {
		for line := range strings.Lines(log) {
			name, _, _ := strings.Cut(field(line, "resource"), ".")
			began, _ := time.Parse(time.RFC3339, field(line, "time"))
			rv, _ := strconv.ParseUint(field(line, "rv"), 10, 64)
			switch {
			case strings.Contains(line, `msg=synced `):
				all[name] = append(all[name], epoch{Began: began})
			case strings.Contains(line, `msg="synced again`):
				from, _ := strconv.ParseUint(field(line, "from"), 10, 64)
				e := &all[name][len(all[name])-1]
				e.Gaps, e.Ended = append(e.Gaps, gap{from, rv}), append(e.Ended, began)
			}
		}
	}
	return all
}

// field returns a field of a line of the gateway's log.
func field(line, name string) string {
	_, after, _ := strings.Cut(" "+line, " "+name+"=")
	value, _, _ := strings.Cut(after, " ")
	return strings.TrimSpace(value)
}

// rotation returns the profiles of rounds in front of a number of API servers. One of
// several may lag.
func rotation(apiServers int) []profile {
	all := append(slices.Clone(profiles), restores)
	for i := range all {
		if apiServers > 1 {
			all[i].kills = append(slices.Clone(all[i].kills), "lag", "lag")
		}
	}
	return all
}

// TestFaults runs rounds with faults for WATCHKEEPER_FAULTS_SECONDS, each of
// WATCHKEEPER_FAULTS_ROUND seconds. Consecutive seeds have different profiles, unless
// WATCHKEEPER_FAULTS_PROFILE is the name of one.
func TestFaults(t *testing.T) {
	clustertest.SkipShort(t)
	seconds := clustertest.FromEnv(t, "WATCHKEEPER_FAULTS_SECONDS", 36)
	length := clustertest.FromEnv(t, "WATCHKEEPER_FAULTS_ROUND", 12)
	seed := clustertest.FromEnv(t, "WATCHKEEPER_FAULTS_SEED", rand.Uint64N(1<<32))
	t.Logf("WATCHKEEPER_FAULTS_SEED=%d, %d s in rounds of %d s", seed, seconds, length)
	c, err := theCluster()
	if err != nil {
		t.Fatal(err)
	}
	apiServers, err := c.APIServerNames()
	if err != nil {
		t.Fatal(err)
	}
	all := rotation(len(apiServers))
	only := os.Getenv("WATCHKEEPER_FAULTS_PROFILE")
	if i := slices.IndexFunc(all, func(p profile) bool { return p.name == only }); i >= 0 {
		all = all[i : i+1]
	}
	var sum summary
	for range max(1, seconds/length) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := &round{
				t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), profile: all[seed%uint64(len(all))],
				length: time.Duration(length) * time.Second, cluster: c, apiServers: apiServers,
			}
			h, err := r.run()
			for _, name := range r.namespaces {
				if err := kubectl(c, "delete", "namespace", name, "--wait=false"); err != nil {
					t.Error(err)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			var one summary
			one.add(r, h)
			sum.add(r, h)
			t.Logf("%s, %v", r.profile.name, one)
			all := judge(h)
			if len(all) == 0 {
				return
			}
			for _, v := range all[:min(10, len(all))] {
				t.Errorf("%.2000s", v.String())
			}
			t.Errorf("%d violations; repeat with WATCHKEEPER_FAULTS_SEED=%d WATCHKEEPER_FAULTS_SECONDS=%[3]d WATCHKEEPER_FAULTS_ROUND=%[3]d", len(all), seed, length)
			r.keep(h, all)
		})
		seed++
	}
	t.Logf("faults in all: %v", sum)
}
