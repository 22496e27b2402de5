// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

// A Backup is the state of a server at one moment, like a snapshot of etcd.
type Backup struct {
	rv      uint64
	objects [][]slot // by collection
}

// RV returns the resourceVersion of the backup.
func (b *Backup) RV() uint64 { return b.rv }

// Backup returns the current state.
func (s *Server) Backup() *Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Backup{rv: s.rv}
	for _, c := range s.collections {
		objects := make([]slot, len(c.objects))
		for i, o := range c.objects {
			objects[i] = *o
		}
		b.objects = append(b.objects, objects)
	}
	return b
}

// Restore replaces the state by that of a backup of this server, as a restore of etcd
// and restarted API servers do. The resourceVersion continues at that of the backup plus
// bump (etcdutl snapshot restore --bump-revision). Earlier history is compacted. Open
// watches break.
func (s *Server) Restore(b *Backup, bump uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv = b.rv + bump
	for i, c := range s.collections {
		c.objects = make([]*slot, len(b.objects[i]))
		for j := range b.objects[i] {
			o := b.objects[i][j]
			c.objects[j] = &o
		}
		c.dropped, c.log = c.dropped+len(c.log), nil
		c.compacted, c.progress = s.rv, s.rv
	}
	s.endLocked(endCut)
}
