// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// restoreEvery is the time with faults per restore.
const restoreEvery = 12 * time.Second

// plan draws the kills, with a limited number of restores, which make the round longer; one at
// least if the profile has them.
func (r *round) plan() (all []kill) {
	drawn := r.profile.plan(r.rand, r.length)
	if slices.Contains(r.profile.kills, "restore") && !slices.ContainsFunc(drawn, kill.isRestore) {
		drawn[0].what = "restore"
	}
	restores := max(1, int(r.length/restoreEvery))
	for _, k := range drawn {
		if k.isRestore() {
			restores--
		}
		if !k.isRestore() || restores >= 0 {
			all = append(all, k)
		}
	}
	return all
}

func (k kill) isRestore() bool { return strings.HasSuffix(k.what, "restore") }

// disturb lets the time of faults pass, and performs the planned kills.
func (r *round) disturb(ctx context.Context, wg *sync.WaitGroup) error {
	began := time.Now()
	for _, k := range r.plan() {
		if k.isRestore() { // of a snapshot taken some time before
			time.Sleep(time.Until(began.Add(k.at - upTo(r.rand, k.at))))
			if err := r.backUp(); err != nil {
				return err
			}
		}
		time.Sleep(time.Until(began.Add(k.at)))
		r.kills = append(r.kills, k)
		at := time.Now()
		if err := r.kill(ctx, wg, k); err != nil {
			return fmt.Errorf("%s: %w", k.what, err)
		}
		if k.isRestore() {
			began = began.Add(time.Since(at))
		}
	}
	time.Sleep(time.Until(began.Add(r.length)))
	return r.endLag()
}

func (r *round) kill(ctx context.Context, wg *sync.WaitGroup, k kill) error {
	if k.isRestore() {
		return r.restore(ctx, wg, r.backups[r.rand.IntN(len(r.backups))], k.what == "bumped restore")
	}
	switch component, signal, _ := strings.Cut(k.what, " "); component {
	case "gateway":
		r.gateway.Kill()
		r.logs = append(r.logs, r.gateway.Log())
		time.Sleep(k.down)
		return r.gateway.Restart()
	case "connections":
		r.proxy.CutAll()
		return nil
	case "lag":
		// For longer than an API server waits for its cache before a consistent list: 3 seconds.
		return r.cluster.Lag(r.apiServers[r.rand.IntN(len(r.apiServers))], "--for", (time.Second + 3*k.down).String())
	default:
		if component != "etcd" {
			defer r.isUnready(time.Now())
		}
		if err := r.cluster.Signal(component, signal); err != nil {
			return err
		}
		time.Sleep(k.down)
		return r.cluster.StartComponent(component)
	}
}

// isUnready notes that an API server has not been ready since a time until now.
func (r *round) isUnready(since time.Time) {
	r.unready = append(r.unready, timeSpan{since, time.Now()})
}

// endLag ends the lag of all API servers.
func (r *round) endLag() error {
	var errs []error
	for _, name := range r.apiServers {
		if len(r.apiServers) > 1 {
			errs = append(errs, r.cluster.Lag(name, "--off"))
		}
	}
	return errors.Join(errs...)
}

// A backupFile is a snapshot of etcd.
type backupFile struct {
	path     string
	rv       uint64
	restores int // before it
}

func (r *round) backUp() error {
	b := backupFile{path: filepath.Join(r.t.TempDir(), "snapshot.db"), restores: len(r.restored)}
	var err error
	b.rv, err = r.cluster.Snapshot(b.path)
	r.backups = append(r.backups, b)
	return err
}

// restore restores etcd from a backup. The API servers are frozen before they are killed, so that
// etcd shows all that they may have sent. Sometimes the gateway is frozen until the RV has passed
// the one of before.
func (r *round) restore(ctx context.Context, wg *sync.WaitGroup, b backupFile, bumped bool) error {
	frozen := r.rand.IntN(2) == 0
	if frozen {
		thaw, err := freeze(r.gateway.PID())
		if err != nil {
			return err
		}
		defer thaw()
	}
	for _, rec := range r.recorders {
		rec.pause()
	}
	if err := r.cluster.SignalAPIServers("STOP"); err != nil {
		return err
	}
	at := time.Now()
	head, err := r.etcd.revision(ctx)
	if err != nil {
		return err
	}
	for _, rec := range r.recorders {
		if err := rec.complete(ctx, head); err != nil {
			return err
		}
	}
	rv, flags := b.rv, []string(nil)
	if bumped {
		rv = r.highest(head) + bump
		flags = []string{"--bump-revision", strconv.FormatUint(rv-b.rv, 10)}
	}
	if err := r.cluster.Restore(b.path, flags...); err != nil {
		return err
	}
	r.isUnready(at)
	r.restored = append(r.restored, at)
	for _, rec := range r.recorders {
		rec.restored(b, rv, at, head)
		rec.run(ctx, wg)
	}
	if !frozen {
		return nil
	}
	if err := r.etcd.advance(ctx, head); err != nil {
		return err
	}
	for _, rec := range r.recorders { // until something was written
		if _, err := rec.result(head + 1); err != nil {
			return err
		}
	}
	return nil
}

// highest returns the highest RV that etcd has had.
func (r *round) highest(now uint64) uint64 {
	for t := &r.recorders["pods"].truth; t != nil; t = t.earlier {
		now = max(now, t.head)
	}
	return now
}
