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

	"github.com/watchkeeper/watchkeeper/internal/faultproxy"
)

// A profile is a kind of trouble.
type profile struct {
	name string
	// without are the faults that it does without.
	without []faultproxy.Name
	kills   []string
	// whole is set when nothing of it costs a gateway its history.
	whole bool
}

// loses are the faults that may make a gateway list again.
var loses = []faultproxy.Name{faultproxy.Gone, faultproxy.GoneWithin, faultproxy.Older, faultproxy.Regress, faultproxy.Garble,
	faultproxy.HTML, faultproxy.EndWithin, faultproxy.TruncateEnd, faultproxy.EarlyEnd, faultproxy.End}

var profiles = []profile{
	{name: "network", without: loses, kills: []string{"connections"}, whole: true},
	{name: "network and gateway", without: loses, kills: []string{"gateway", "connections"}, whole: true},
	{name: "everything but the past", without: []faultproxy.Name{faultproxy.Regress}, kills: []string{"gateway", "kube-apiserver KILL", "etcd KILL", "kube-apiserver STOP", "connections"}},
	{name: "everything", kills: []string{"gateway", "kube-apiserver KILL", "etcd KILL", "kube-apiserver STOP", "kube-apiserver TERM", "connections"}},
	{name: "kills", without: append([]faultproxy.Name{faultproxy.CutBetween, faultproxy.CutWithin, faultproxy.Stall, faultproxy.HalfOpen}, loses...), kills: []string{"kube-apiserver KILL", "etcd KILL", "gateway", "kube-apiserver KILL"}},
}

// draw returns the proxy's drawing, without some faults.
func (p profile) draw(seed uint64) func(string, faultproxy.Kind, int) faultproxy.Fault {
	return func(resource string, kind faultproxy.Kind, n int) faultproxy.Fault {
		f := faultproxy.Draw(seed, resource, kind, n)
		if slices.Contains(p.without, f.Name) {
			f.Name = faultproxy.None
		}
		return f
	}
}

// A kill of a component, or what is as bad.
type kill struct {
	at   time.Duration // from the beginning of the trouble
	what string        // a component and a signal
	away time.Duration
}

// plan draws up to three kills.
func (p profile) plan(r *rand.Rand, length time.Duration) []kill {
	all := make([]kill, r.IntN(4))
	for i := range all {
		all[i] = kill{
			at:   length/8 + upTo(r, length*3/4),
			what: p.kills[r.IntN(len(p.kills))],
			away: upTo(r, 2*time.Second),
		}
	}
	slices.SortFunc(all, func(a, b kill) int { return cmp.Compare(a.at, b.at) })
	return all
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// epochs reads from the logs of a round's gateways what they listed anew, and
// over which gaps they went on.
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
				e.Gaps = append(e.Gaps, gap{from, rv})
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

// TestFaults runs rounds of trouble for as long as WATCHKEEPER_FAULTS_SECONDS
// says.
func TestFaults(t *testing.T) {
	seconds, seed := uint64(60), rand.Uint64N(1<<32)
	for name, v := range map[string]*uint64{"WATCHKEEPER_FAULTS_SECONDS": &seconds, "WATCHKEEPER_FAULTS_SEED": &seed} {
		if s := os.Getenv(name); s != "" {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*v = n
		}
	}
	t.Logf("WATCHKEEPER_FAULTS_SEED=%d, for %d s", seed, seconds)
	c, err := theCluster()
	if err != nil {
		t.Fatal(err)
	}
	rounds := max(1, int(seconds+30)/60)
	length := time.Duration(seconds) * time.Second / time.Duration(rounds)
	for range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			r := &round{t: t, seed: seed, rand: random, profile: profiles[random.IntN(len(profiles))], length: length * 3 / 4, cluster: c}
			h, err := r.run()
			for _, name := range r.namespaces {
				if err := kubectl(c, "delete", "namespace", name, "--wait=false"); err != nil {
					t.Error(err)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			r.report(h)
			var all []violation
			for _, v := range validators {
				for _, violation := range v.judge(h) {
					violation.guarantee = v.name
					all = append(all, violation)
				}
			}
			if len(all) == 0 {
				return
			}
			sortViolations(all)
			for _, v := range all[:min(10, len(all))] {
				t.Errorf("%.2000s", v.String())
			}
			t.Errorf("%d violations; run it again with WATCHKEEPER_FAULTS_SEED=%d WATCHKEEPER_FAULTS_SECONDS=%d", len(all), seed, int(length.Seconds()))
			r.keep(h, all)
		})
		seed = rand.New(rand.NewPCG(seed, 1)).Uint64N(1 << 32)
	}
}
