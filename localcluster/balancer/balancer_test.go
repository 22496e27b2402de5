// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// The tests in uptest run the modes with real API servers.

// newTestPool returns a pool of the members a, b and c.
func newTestPool(random bool, all ...health) *pool {
	p := newPool([]Replica{{Address: "a"}, {Address: "b"}, {Address: "c"}}, random)
	for i, h := range all {
		p.members[i].health = h
	}
	return p
}

// order returns the addresses in the order of choose.
func (p *pool) order() string {
	var addresses []string
	for _, m := range p.choose() {
		addresses = append(addresses, m.Address)
	}
	return strings.Join(addresses, "")
}

func TestInTurn(t *testing.T) {
	for _, test := range []struct {
		health []health
		want   []string
	}{
		{[]health{ready, ready, ready}, []string{"bca", "cab", "abc", "bca"}},
		{[]health{ready, failing, ready}, []string{"cab", "acb", "cab"}},
		{[]health{failing, ready, failing}, []string{"bca", "bac", "bca"}},
		{[]health{failing, failing, failing}, []string{"bca", "cab", "abc"}},
		{[]health{unready, ready, failing}, []string{"bc", "bc"}},
		{[]health{unready, unready, unready}, []string{""}},
	} {
		p := newTestPool(false, test.health...)
		for i, want := range test.want {
			if got := p.order(); got != want {
				t.Errorf("health %v, choice %d: %s, want %s", test.health, i, got, want)
			}
		}
	}
}

func TestRandom(t *testing.T) {
	p := newTestPool(true, failing, ready, ready)
	seen := map[string]bool{}
	for range 1000 {
		seen[p.order()] = true
	}
	if len(seen) != 2 || !seen["bca"] || !seen["cba"] {
		t.Errorf("the orders are %v", seen)
	}
}

// TestTry: a member that cannot be reached is not tried first again.
func TestTry(t *testing.T) {
	p := newTestPool(false, ready, ready, ready)
	var tried []string
	connect := func(m *member) error {
		tried = append(tried, m.Address)
		if m.Address == "b" {
			return errors.New("refused")
		}
		return nil
	}
	for range 4 {
		if err := p.try(connect); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(tried, ""); got != "bcaca" {
		t.Errorf("tried %s", got)
	}
	err := p.try(func(m *member) error { return errors.New(m.Address + " refused") })
	if err == nil || !strings.Contains(err.Error(), "a refused") || !strings.Contains(err.Error(), "b refused") {
		t.Errorf("without a member: %v", err)
	}
}

// TestStarting: the result of a check that began before the replica was restarted does not
// count.
func TestStarting(t *testing.T) {
	p := newTestPool(false)
	m := p.members[0]
	m.Check = func(context.Context) error { return nil }
	if m.check(t.Context()); m.now() != ready {
		t.Fatal("a replica is not ready after a check that succeeded")
	}
	m.Check = func(context.Context) error { m.starting(); return nil }
	if m.check(t.Context()); m.now() != unready {
		t.Error("a replica that was restarted is ready by an earlier check")
	}
	m.Check = func(context.Context) error { return errors.New("not yet") }
	if m.check(t.Context()); m.now() != unready {
		t.Error("a replica that does not yet serve may get clients")
	}
}
