// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// Options say how a store is kept. Cluster is required.
type Options struct {
	// Cluster identifies the cluster: the UID of its namespace kube-system. ""
	// opens any store that is there, and makes none.
	Cluster string
	// FS is where it is kept; nil means the file system.
	FS vfs.FS
	// Logger takes what the store does by itself; nil discards it.
	Logger *slog.Logger
	// MaxAge is how far back the history is kept, MaxBytes how large it may be on
	// disk; Trim enforces both. 0 means no bound, but that some of the disk is left
	// free.
	MaxAge   time.Duration
	MaxBytes int64
	// ReadOnly opens a store that is there without a change to its directory.
	ReadOnly bool

	// For tests; 0 means memTableSize and reserve.
	memTable, reserve uint64
}

// A Store is the history of one cluster, in one directory. It may be used by
// any goroutine.
type Store struct {
	opts Options
	dir  string
	now  func() time.Time

	open  sync.RWMutex // held, to read, by who uses the database; before all other locks
	db    *pebble.DB   // nil when closed
	guard *guard
	why   error // why it is only read, though it is to be written

	events *budget // of those who read events

	trimming sync.Mutex  // held by Trim; guards floor
	floor    int64       // what tables take when there is little to remove
	garbage  atomic.Bool // something was removed, but perhaps not from disk yet

	making sync.Mutex // held by who makes or removes a stream; before mu

	measuring atomic.Bool
	bytes     atomic.Int64 // what Usage knows

	mu      sync.Mutex                  // guards what follows; never held while writing
	streams map[kube.Resource][]*Stream // by epoch, the oldest first
	last    streamID
}

// Cluster returns whose history it is, see [Options].
func (s *Store) Cluster() string { return s.opts.Cluster }

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

// Open opens the store in a directory, which it makes if need be. It fails with
// [ErrOtherCluster], [ErrNewerFormat], or what the file system says: also when
// another process has it open.
//
// One that is there, but cannot be written, as on a full disk, is opened to be
// read: [Store.Err] says why, and [Store.Recover] tries again.
func Open(dir string, opts Options) (*Store, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{opts: opts, dir: dir, now: time.Now, events: newBudget(eventBytes), streams: map[kube.Resource][]*Stream{}}
	s.garbage.Store(true) // who knows
	err := s.connect(opts.ReadOnly)
	if err == nil {
		return s, nil
	}
	// What keeps it from being read as well is said as it was at first.
	if opts.ReadOnly || s.connect(true) != nil {
		return nil, err
	}
	s.why = fmt.Errorf("%w: %w", ErrFailed, err)
	opts.Logger.Warn("the history cannot be written, and is opened to be read", "err", err)
	return s, nil
}

// connect opens the database and reads what it holds.
func (s *Store) connect(readOnly bool) error {
	err := s.openDB(readOnly)
	if err != nil {
		return fmt.Errorf("history in %s: %w", s.dir, damage(err))
	}
	if err = s.identify(readOnly); err == nil {
		err = s.load()
	}
	if err == nil && !readOnly {
		err = s.enter()
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("history in %s: %w", s.dir, damage(err)), s.db.Close())
		s.db = nil
	}
	return err
}

// identify checks whose store it is, or says so in a new one.
func (s *Store) identify(readOnly bool) error {
	var id identity
	found, err := s.getJSON([]byte{tableFormat}, &id)
	switch cluster := s.opts.Cluster; {
	case err != nil:
		return err
	case !found && (cluster == "" || readOnly):
		return corrupt("it does not say what it is")
	case !found:
		return s.setJSON([]byte{tableFormat}, identity{formatVersion, cluster})
	case id.Format > formatVersion:
		return fmt.Errorf("%w: format %d, this one reads up to %d", ErrNewerFormat, id.Format, formatVersion)
	case id.Cluster != cluster && cluster != "":
		return fmt.Errorf("%w: %s, not %s", ErrOtherCluster, id.Cluster, cluster)
	}
	return nil
}

// getJSON reads a record in JSON.
func (s *Store) getJSON(key []byte, into any) (found bool, err error) {
	value, err := s.get(key)
	if value == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(value, into); err != nil {
		return false, corrupt("%q: %v", key, err)
	}
	return true, nil
}

func (s *Store) setJSON(key []byte, record any) error {
	value, err := json.Marshal(record)
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.Set(key, value, nil); err != nil {
		return err
	}
	return s.commit(b)
}

// get returns the value of a key, nil if there is none.
func (s *Store) get(key []byte) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damage(err)
	}
	return append([]byte{}, value...), closer.Close()
}

// iter iterates over the keys from lower on, up to before upper.
func (s *Store) iter(lower, upper []byte) (*pebble.Iterator, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	return it, damage(err)
}

// each calls f for the keys of a table, of one stream if s is not 0.
func (s *Store) each(prefix []byte, f func(key, value []byte) error) error {
	it, err := s.iter(prefix, after(prefix))
	if err != nil {
		return err
	}
	for it.First(); err == nil && it.Valid(); it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = f(it.Key(), value)
		}
	}
	return damage(errors.Join(err, it.Error(), it.Close()))
}

// load reads which streams there are.
func (s *Store) load() error {
	err := s.each([]byte{tableStream}, func(key, value []byte) error {
		var r streamRecord
		if err := json.Unmarshal(value, &r); err != nil || len(key) != prefixLen {
			return corrupt("stream %q: %v", key, err)
		}
		s.known(streamID(binary.BigEndian.Uint32(key[1:])), r)
		return nil
	})
	for _, st := range s.all() {
		if err != nil {
			return err
		}
		if err = st.load(); errors.Is(err, ErrCorrupt) {
			// The others are not to suffer. It goes when it would, had it ended now.
			st.damaged(err)
			st.mu.Lock()
			st.span.To.At, err = s.now(), nil
			st.mu.Unlock()
		}
	}
	return err
}

// known enters a stream.
func (s *Store) known(id streamID, r streamRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource := kube.Resource{Group: r.Group, Version: r.Version, Name: r.Resource}
	s.last = max(s.last, id)
	if all := s.streams[resource]; !slices.ContainsFunc(all, func(st *Stream) bool { return st.id == id }) {
		all = append(slices.Clone(all), newStream(s, id, resource, r.Epoch))
		slices.SortFunc(all, func(a, b *Stream) int { return cmp.Compare(a.epoch, b.epoch) })
		s.streams[resource] = all
	}
}

// Resources returns what has been recorded, in the order of their names.
func (s *Store) Resources() []kube.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []kube.Resource
	for r := range s.streams {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b kube.Resource) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// Streams returns the streams of a resource, the oldest epoch first; nil if it
// was never recorded.
func (s *Store) Streams(resource kube.Resource) []*Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.streams[resource])
}

// Stream returns the newest stream of a resource, for its writer; it makes one
// if there is none, or if that is damaged.
func (s *Store) Stream(resource kube.Resource) (*Stream, error) {
	if err := s.use(); err != nil {
		return nil, err
	}
	defer s.done()
	s.making.Lock()
	defer s.making.Unlock()
	if all := s.Streams(resource); len(all) > 0 {
		if newest := all[len(all)-1]; newest.Damage() == nil {
			newest.hold(true)
			return newest, nil
		}
	}
	return s.newEpoch(resource)
}

// NewEpoch returns a new stream of a resource: what comes does not continue
// what is recorded, as after a restore of the upstream's etcd. Who reads the
// old one goes on doing so.
func (s *Store) NewEpoch(resource kube.Resource) (*Stream, error) {
	if err := s.use(); err != nil {
		return nil, err
	}
	defer s.done()
	s.making.Lock()
	defer s.making.Unlock()
	return s.newEpoch(resource)
}

func (s *Store) newEpoch(resource kube.Resource) (*Stream, error) {
	all, epoch := s.Streams(resource), 0
	if len(all) > 0 {
		epoch = all[len(all)-1].epoch + 1
	}
	s.mu.Lock()
	st := newStream(s, s.last+1, resource, epoch)
	s.mu.Unlock()
	if err := s.setJSON(appendKey(nil, tableStream, st.id), streamRecord{resource.Group, resource.Version, resource.Name, epoch}); err != nil {
		return nil, err
	}
	for _, old := range all {
		old.hold(false)
	}
	st.hold(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = st.id
	s.streams[resource] = append(slices.Clone(all), st)
	return st, nil
}
