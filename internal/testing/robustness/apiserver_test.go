// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// An apiserver is a simulated API server of ConfigMaps, with their true history.
type apiserver struct {
	*fakeapi.Server
	step uint64 // maximum increase of the RV per write; the RVs between belong to other resources

	mu    sync.Mutex // guards what follows
	rand  *rand.Rand
	truth truth
	now   state
	down  bool
	since time.Time // it is down
	lists bool      // it answers lists, and no watch
	acks  []ack
	count int
}

func newAPIServer(seed uint64) *apiserver {
	r := rand.New(rand.NewPCG(seed, 5))
	s := &apiserver{
		Server: fakeapi.New(fakeapi.Options{Resources: []fakeapi.Resource{fakeapi.ConfigMaps}}),
		rand:   r, step: []uint64{1, 1, 3, 20}[r.IntN(4)], now: state{},
	}
	s.truth.base, s.truth.start = s.RV(), map[string]*version{}
	s.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
		s.mu.Lock()
		down, lists := s.down, s.lists
		s.mu.Unlock()
		switch {
		case down:
			panic(http.ErrAbortHandler)
		case lists && r.Verb == "watch":
			fakeapi.WriteStatus(w, http.StatusGatewayTimeout, "Timeout", "no watch is answered")
		default:
			next(w)
		}
	})
	return s
}

// write makes one random change.
func (s *apiserver) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.down {
		s.writeLocked()
	}
}

func (s *apiserver) writeLocked() {
	r := s.rand
	other := r.Uint64N(s.step)
	if r.IntN(20) == 0 {
		s.Advance(1 + other) // another resource was written
		return
	}
	s.Advance(other)
	s.count++
	key := fmt.Sprintf("%c/%c%d", 'a'+r.IntN(2), 'a'+r.IntN(2), r.IntN(5))
	v := &version{Key: key, prev: s.now[key], seen: time.Now()}
	a := ack{At: time.Now(), Resource: "configmaps"}
	if v.prev != nil && r.IntN(5) < 2 {
		v.RV = s.Delete("configmaps", key)
		v.Deleted, v.UID, v.JSON = true, v.prev.UID, v.prev.at(v.RV)
		delete(s.now, key)
		a.Deleted = v.UID
	} else {
		namespace, name, _ := strings.Cut(key, "/")
		uid := strconv.Itoa(s.count)
		if v.prev != nil {
			uid = v.prev.UID
		}
		v.RV = s.Put("configmaps", fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q,"uid":%q,"labels":{"robust":"yes","tier":%q}},"data":{"n":"%d","pad":%q}}`,
			name, namespace, uid, tiers[r.IntN(3)], s.count, strings.Repeat("x", r.IntN(100))))
		v.JSON = s.Get("configmaps", key)
		if err := v.index(); err != nil {
			panic(err)
		}
		s.now[key] = v
		a.RV = v.RV
	}
	s.truth.versions = append(s.truth.versions, v)
	s.acks = append(s.acks, a)
}

// setDown stops the server, or restarts it with an empty watch history.
func (s *apiserver) setDown(down bool) {
	s.mu.Lock()
	s.down, s.since = down, time.Now()
	s.mu.Unlock()
	if down {
		s.CutWatches()
	} else {
		s.Compact(s.RV())
	}
}

// refuseWatches makes the server answer no watch, or any again.
func (s *apiserver) refuseWatches(refuse bool) {
	s.mu.Lock()
	s.lists = refuse
	s.mu.Unlock()
	if refuse {
		s.CutWatches()
	}
}

// A backup is a backup of an apiserver, with what is true up to it.
type backup struct {
	*fakeapi.Backup
	versions []*version
	now      state
}

func (s *apiserver) backup() backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return backup{s.Backup(), slices.Clip(s.truth.versions), maps.Clone(s.now)}
}

// bump is how far above all earlier RVs a bumped restore continues.
const bump = 100_000

// restore restores a backup and starts the server, which is down. Other clients write before
// the gateway is back: sometimes until the RV has passed the one of before.
func (s *apiserver) restore(b backup, bumped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.truth
	old.ended, old.head = s.since, s.RV()
	highest := b.RV()
	for t := &old; t != nil; t = t.earlier {
		highest = max(highest, t.head)
	}
	s.truth = truth{base: old.base, start: old.start, versions: b.versions, earlier: &old, backup: b.RV(), bumped: bumped, began: time.Now()}
	s.now = maps.Clone(b.now)
	if bumped {
		s.Restore(b.Backup, highest+bump-b.RV())
	} else {
		s.Restore(b.Backup, 0)
	}
	for range s.rand.IntN(20) {
		s.writeLocked()
	}
	if rv := s.RV(); rv < old.head && s.rand.IntN(2) == 0 {
		s.Advance(old.head - rv)
		for range 1 + s.rand.IntN(10) {
			s.writeLocked()
		}
	}
	s.down = false
}
