// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

var (
	// ErrOtherCluster marks a directory that holds another cluster's history.
	ErrOtherCluster = errors.New("the directory holds the history of another cluster")
	// ErrNewerFormat marks a directory that a later version of the program wrote.
	ErrNewerFormat = errors.New("the history was written by a newer version")
)

// Options say how a store is kept. Cluster is required.
type Options struct {
	// Cluster identifies the cluster: the UID of its namespace kube-system.
	Cluster string
	// FS is where it is kept; nil means the file system.
	FS vfs.FS
	// Logger takes what the store does by itself; nil discards it.
	Logger *slog.Logger
}

// A Store is the history of one cluster, in one directory. It may be used by
// any goroutine.
type Store struct {
	db *pebble.DB

	mu      sync.Mutex // guards what follows
	streams map[kube.Resource]*Stream
	last    streamID
}

// identity is the record of what a store is.
type identity struct {
	Format  int    `json:"format"`
	Cluster string `json:"cluster"`
}

// streamRecord is the record of a stream.
type streamRecord struct {
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Epoch    int    `json:"epoch"`
}

const (
	blockSize = 32 << 10
	cacheSize = 64 << 20
)

// Open opens the store in a directory, which it makes if need be. It fails with
// [ErrOtherCluster], [ErrNewerFormat], or what the file system says: also when
// another process has it open.
func Open(dir string, opts Options) (*Store, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	level := pebble.LevelOptions{
		BlockSize:      blockSize,
		IndexBlockSize: blockSize,
		Compression:    func() *sstable.CompressionProfile { return block.ZstdCompression },
	}
	o := &pebble.Options{
		FS: opts.FS, CacheSize: cacheSize, FormatMajorVersion: pebble.FormatNewest,
		MemTableSize: 16 << 20, Logger: quiet{opts.Logger},
	}
	for i := range o.Levels {
		o.Levels[i] = level
	}
	db, err := pebble.Open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("history in %s: %w", dir, err)
	}
	s := &Store{db: db, streams: map[kube.Resource]*Stream{}}
	if err = s.identify(opts.Cluster); err == nil {
		err = s.load()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("history in %s: %w", dir, err), db.Close())
	}
	return s, nil
}

// Close writes what is pending and closes the store.
func (s *Store) Close() error { return s.db.Close() }

// identify checks whose store it is, or says so in a new one.
func (s *Store) identify(cluster string) error {
	var id identity
	found, err := s.get([]byte{tableFormat}, &id)
	switch {
	case err != nil:
		return err
	case !found:
		text, err := json.Marshal(identity{formatVersion, cluster})
		if err != nil {
			return err
		}
		return s.db.Set([]byte{tableFormat}, text, pebble.Sync)
	case id.Format > formatVersion:
		return fmt.Errorf("%w: format %d, this one reads up to %d", ErrNewerFormat, id.Format, formatVersion)
	case id.Cluster != cluster:
		return fmt.Errorf("%w: %s, not %s", ErrOtherCluster, id.Cluster, cluster)
	}
	return nil
}

// get reads a record in JSON.
func (s *Store) get(key []byte, into any) (found bool, err error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer closer.Close()
	if err := json.Unmarshal(value, into); err != nil {
		return false, corrupt("%q: %v", key, err)
	}
	return true, nil
}

// load reads which streams there are.
func (s *Store) load() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{tableStream}, UpperBound: []byte{tableStream + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		var r streamRecord
		if err := json.Unmarshal(it.Value(), &r); err != nil || len(it.Key()) != prefixLen {
			return corrupt("stream %q: %v", it.Key(), err)
		}
		id := streamID(binary.BigEndian.Uint32(it.Key()[1:]))
		resource := kube.Resource{Group: r.Group, Version: r.Version, Name: r.Resource}
		if old := s.streams[resource]; old == nil || old.epoch < r.Epoch {
			s.streams[resource] = &Stream{s: s, id: id, epoch: r.Epoch}
		}
		s.last = max(s.last, id)
	}
	return it.Error()
}

// Stream returns the newest stream of a resource, with what it holds; it begins
// one if there is none.
func (s *Store) Stream(resource kube.Resource) (*Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[resource]
	if st == nil {
		return s.begin(resource, 0)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.last == nil {
		if err := st.load(); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// begin begins a stream.
func (s *Store) begin(resource kube.Resource, epoch int) (*Stream, error) {
	text, err := json.Marshal(streamRecord{resource.Group, resource.Version, resource.Name, epoch})
	if err != nil {
		return nil, err
	}
	st := &Stream{s: s, id: s.last + 1, epoch: epoch, last: map[kube.Key]stored{}, columns: map[string]uint64{}}
	if err := s.db.Set(appendKey(nil, tableStream, st.id), text, pebble.Sync); err != nil {
		return nil, err
	}
	s.last = st.id
	s.streams[resource] = st
	return st, nil
}

// quiet has Pebble log what matters.
type quiet struct{ log *slog.Logger }

func (q quiet) Infof(format string, args ...any)  { q.log.Debug(fmt.Sprintf(format, args...)) }
func (q quiet) Errorf(format string, args ...any) { q.log.Error(fmt.Sprintf(format, args...)) }
func (q quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
