// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import "slices"

// A Backup is the state of a server at one moment, like a snapshot of etcd.
type Backup struct {
	of      *Server
	rv      uint64
	objects [][]version // by collection
}

// RV returns the resourceVersion of the backup.
func (b *Backup) RV() uint64 { return b.rv }

// Backup returns the current state.
func (s *Server) Backup() *Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Backup{of: s, rv: s.rv}
	for _, c := range s.collections {
		b.objects = append(b.objects, c.now())
	}
	return b
}

// Restore replaces the state by that of a backup of this server, as a restore of etcd
// and restarted API servers do. The resourceVersion continues at that of the backup plus
// bump (etcdutl snapshot restore --bump-revision). Earlier history is compacted. Open
// watches break. It panics if the backup is that of another server.
func (s *Server) Restore(b *Backup, bump uint64) {
	if b == nil || b.of != s {
		panic("informertest: Restore needs a Backup of the same server")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv = b.rv + bump
	for i, c := range s.collections {
		c.objects = slices.Clone(b.objects[i])
		c.dropped, c.log = c.dropped+len(c.log), nil
		c.compacted, c.progress = s.rv, s.rv
	}
	s.endLocked(endCut)
}
