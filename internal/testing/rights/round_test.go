// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A round is the trials of one seed.
type round struct {
	t          *testing.T
	repeat     uint64 // WATCHKEEPER_RIGHTS_SEED that repeats it
	seed       uint64
	world      *world
	identities []*identity
	// impersonated is set if the gateway may impersonate callers with certificates.
	impersonated bool
	// alike is how many trials in a row are about the same resource and user.
	alike int
}

// newRound makes a world and its identities, from the seed repeat+offset.
func newRound(t *testing.T, repeat, offset uint64) *round {
	t.Helper()
	seed := repeat + offset
	w, err := newWorld(t.Context(), seed, api)
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.identities(t.Context(), cluster, issuer, direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, i := range all {
			i.close()
		}
	})
	return &round{t: t, repeat: repeat, seed: seed, world: w, identities: all, alike: 1}
}

// manyAlike is how many trials in a row are about the same resource and user, where a
// cache of decisions is tested.
const manyAlike = 8

// run sends so many requests to both servers, of identities that are chosen, and returns
// the mismatches. extensions says whether the gateway has any.
func (r *round) run(gateway server, count int, extensions bool, chosen func(*identity) bool) (trials []*trial, wrong map[*trial]string) {
	identities := slices.DeleteFunc(slices.Clone(r.identities), func(i *identity) bool { return !chosen(i) })
	several := slices.DeleteFunc(slices.Clone(identities), func(i *identity) bool { return len(i.namesakes(identities)) < 3 })
	before := r.objects()
	var all jobs
	var mu sync.Mutex // guards trials and wrong
	wrong = map[*trial]string{}
	for n := range count {
		all.add(func() error {
			// Each trial has generators of its own, so that their order does not matter.
			shared, draw := rand.New(rand.NewPCG(r.seed, uint64(n/r.alike)+1)), rand.New(rand.NewPCG(r.seed+1, uint64(n)))
			t := &trial{number: n, identity: oneOf(shared, identities...), impersonated: r.impersonated}
			if len(several) > 0 && r.alike > 1 && chance(shared, 25) { // the same user in other groups
				t.identity = oneOf(shared, several...)
			}
			if chance(draw, 50) {
				t.identity = oneOf(draw, t.identity.namesakes(identities)...)
			}
			if chance(draw, 40) { // the request of the first in the row, perhaps of another
				draw = rand.New(rand.NewPCG(r.seed+2, uint64(n/r.alike)))
			}
			t.request = r.world.request(shared, draw, extensions)
			if err := t.run(r.t.Context(), gateway); err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			mu.Lock()
			defer mu.Unlock()
			trials = append(trials, t)
			if what := t.judge(); what != "" {
				wrong[t] = what
			}
			return nil
		})
	}
	if err := all.wait(); err != nil {
		r.t.Fatalf("WATCHKEEPER_RIGHTS_SEED=%d: %v", r.repeat, err)
	}
	if after := r.objects(); after != before {
		r.t.Errorf("WATCHKEEPER_RIGHTS_SEED=%d: the requests have changed objects, from\n%s\nto\n%s", r.repeat, before, after)
	}
	return trials, wrong
}

// run sends the request to both servers.
func (t *trial) run(ctx context.Context, gateway server) (err error) {
	switch t.form {
	case now:
		t.direct, err = t.identity.send(ctx, direct, t.request)
	case multiwatch:
		t.watched = make([]bool, len(t.watches))
		for i, watch := range t.watches {
			if err == nil {
				t.watched[i], err = mayExtend(ctx, api, t.identity.user, watch)
			}
		}
		t.allowed = slices.Contains(t.watched, true)
	case whereTo:
		t.granted, err = mayWhere(ctx, api, t.identity.user, t.request)
		t.allowed = len(t.granted) > 0
	default:
		t.allowed, err = mayExtend(ctx, api, t.identity.user, t.request)
	}
	if err != nil {
		return fmt.Errorf("the API server: %w", err)
	}
	if t.gateway, err = t.identity.send(ctx, gateway, t.request); err != nil {
		return fmt.Errorf("the gateway: %w", err)
	}
	return nil
}

// maxReported is how many mismatches are printed.
const maxReported = 30

// report fails the test for each mismatch.
func (r *round) report(wrong map[*trial]string) {
	r.t.Helper()
	for i, t := range slices.SortedFunc(maps.Keys(wrong), func(a, b *trial) int { return a.number - b.number }) {
		if i == maxReported {
			r.t.Errorf("%d mismatches, of which %d are above", len(wrong), maxReported)
			return
		}
		r.t.Errorf("WATCHKEEPER_RIGHTS_SEED=%d: %s: %s", r.repeat, wrong[t], t)
	}
}

// minShare is how many of a hundred trials of a kind have to be allowed, and denied.
const minShare = 2

// summarize logs how many trials there were by what the answer had to be, and checks that
// the world allows and denies enough of each kind for the trials to mean something.
func (r *round) summarize(trials []*trial) {
	r.t.Helper()
	type group struct {
		kind kind
		form form
	}
	all := map[group]map[string]int{}
	for _, t := range trials {
		what := "denied"
		if t.form == now && t.direct.code < 400 || t.form != now && t.allowed {
			what = "allowed"
		} else if t.form == now && t.direct.code != 403 {
			what = "errors"
		}
		g := group{t.identity.kind, t.form}
		if all[g] == nil {
			all[g] = map[string]int{}
		}
		all[g][what]++
	}
	for g, counts := range all {
		r.t.Logf("%s, %s: %v", g.kind, g.form, counts)
		sum := counts["allowed"] + counts["denied"] + counts["errors"]
		if (g.kind != tokenCaller && g.kind != certCaller) || sum < 100 {
			continue
		}
		for _, what := range []string{"allowed", "denied"} {
			if counts[what]*100 < minShare*sum {
				r.t.Errorf("WATCHKEEPER_RIGHTS_SEED=%d: only %d of %d trials of %s, %s are %s", r.repeat, counts[what], sum, g.kind, g.form, what)
			}
		}
	}
}

// objects returns the UIDs and RVs of objects that no component changes.
func (r *round) objects() string {
	var text strings.Builder
	for _, of := range resources {
		if !of.made || of.plural == "pods" { // whose status changes
			continue
		}
		for _, namespace := range r.world.namespaces {
			if of.cluster {
				namespace = ""
			}
			list, err := api.CoreV1().RESTClient().Get().AbsPath(of.path(namespace)).SetHeader("Accept", jsonType).DoRaw(r.t.Context())
			if err != nil {
				r.t.Fatal(err)
			}
			for _, o := range versions(list) {
				if of.cluster && !strings.HasPrefix(o, r.world.prefix) {
					continue
				}
				fmt.Fprintln(&text, of.plural, namespace, o)
			}
		}
	}
	return text.String()
}

// The first seeds of the tests, from the same number. Each makes its own worlds in the
// cluster.
const (
	sameSeed         = 1 << 32
	wrongSeed        = 2 << 32
	impersonatedSeed = 3 << 32
)

// seed returns the seed of the first round.
var seed = sync.OnceValue(func() uint64 {
	if os.Getenv("WATCHKEEPER_RIGHTS_CASES") == "" {
		return 1 // a few thousand cases of a random world may lack a kind of request
	}
	return rand.Uint64N(1 << 32)
})

// seedOf returns WATCHKEEPER_RIGHTS_SEED. Without it, the seed of the soak is a random
// number, which is the same for all tests, and that of make test is always the same.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	n := clustertest.FromEnv(t, "WATCHKEEPER_RIGHTS_SEED", seed())
	t.Logf("WATCHKEEPER_RIGHTS_SEED=%d", n)
	return n
}
