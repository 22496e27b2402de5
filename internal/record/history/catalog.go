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
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// identity is the record at tableFormat: the format and the cluster of the store.
type identity struct {
	Format  int      `json:"format"`
	Cluster string   `json:"cluster"`
	Outages []Outage `json:"outages,omitempty"` // the newest, in order; earlier versions ignore them
}

// An Outage is a time in which the API server did not answer: why a [Gap] is one.
type Outage struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// maxOutages limits the outages that are kept.
const maxOutages = 100

// Outages returns the newest outages, in order.
func (s *Store) Outages() ([]Outage, error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.release()
	var id identity
	_, err := s.getJSON([]byte{tableFormat}, &id)
	return id.Outages, err
}

// AddOutages records outages that are over. Only one goroutine may call it.
func (s *Store) AddOutages(all ...Outage) error {
	if err := s.acquire(); err != nil {
		return err
	}
	defer s.release()
	var id identity
	if _, err := s.getJSON([]byte{tableFormat}, &id); err != nil {
		return err
	}
	for _, o := range all[max(0, len(all)-maxOutages):] {
		id.Outages = append(id.Outages, Outage{o.Since.UTC().Truncate(time.Millisecond), o.Until.UTC().Truncate(time.Millisecond)})
	}
	id.Outages = id.Outages[max(0, len(id.Outages)-maxOutages):]
	return s.setJSON([]byte{tableFormat}, id)
}

// streamRecord is the record of a stream at tableStream.
type streamRecord struct {
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Epoch    int    `json:"epoch"`
}

// checkIdentity fails if an existing store is of another cluster or of a newer format.
// It reads the database read-only: to open it for writing already replaces its files,
// even without a write.
func (s *Store) checkIdentity() error {
	if s.opts.Temporary {
		return nil
	}
	existing := &Store{opts: s.opts, dir: s.dir}
	existing.opts.Logger = slog.New(slog.DiscardHandler)
	if existing.openDB(true) != nil {
		return nil // there is none, or opening it for writing returns the reason
	}
	err := existing.identify(true)
	if closeErr := existing.db.Close(); closeErr != nil {
		return closeErr
	}
	if errors.Is(err, ErrOtherCluster) || errors.Is(err, ErrNewerFormat) {
		return err
	}
	return nil // another one is reported when it is opened for writing
}

// identify compares the store's identity with the options, and writes it to a
// new store.
func (s *Store) identify(readOnly bool) error {
	var id identity
	found, err := s.getJSON([]byte{tableFormat}, &id)
	switch cluster := s.opts.Cluster; {
	case err != nil:
		return err
	case !found && (cluster == "" || readOnly):
		return corrupt("the format record is missing")
	case !found:
		return s.setJSON([]byte{tableFormat}, identity{Format: formatVersion, Cluster: cluster})
	case id.Format > formatVersion:
		return fmt.Errorf("%w: format %d, this version reads up to %d", ErrNewerFormat, id.Format, formatVersion)
	case id.Cluster != cluster && cluster != "":
		return fmt.Errorf("%w: it is of cluster %s, not %s", ErrOtherCluster, id.Cluster, cluster)
	case id.Format < formatVersion && !readOnly:
		return s.setJSON([]byte{tableFormat}, identity{Format: formatVersion, Cluster: id.Cluster})
	}
	return nil
}

// load reads the streams of the store.
func (s *Store) load() error {
	err := s.each([]byte{tableStream}, func(key, value []byte) error {
		var r streamRecord
		if err := json.Unmarshal(value, &r); err != nil || len(key) != prefixLen {
			return corrupt("stream %q: %v", key, err)
		}
		s.register(streamID(binary.BigEndian.Uint32(key[1:])), r)
		return nil
	})
	for _, st := range s.allStreams() {
		if err != nil {
			return err
		}
		if err = st.load(); errors.Is(err, ErrCorrupt) {
			// Other streams stay usable. Retention treats a damaged stream as
			// ending now.
			st.damaged(err)
			st.mu.Lock()
			st.span.To.At, err = s.now(), nil
			st.stamp = st.span.To.At
			st.mu.Unlock()
		}
	}
	return err
}

// register adds a stream to the catalog unless it is there.
func (s *Store) register(id streamID, r streamRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource := kube.Resource{Group: r.Group, Version: r.Version, Name: r.Resource}
	s.last = max(s.last, id)
	all := s.streams[resource.GroupResource()]
	if slices.ContainsFunc(all, func(st *Stream) bool { return st.id == id }) {
		return
	}
	if n := len(all); n > 0 { // earlier versions of this program counted the epochs of each API version
		r.Epoch = max(r.Epoch, all[n-1].epoch+1)
	}
	s.streams[resource.GroupResource()] = append(slices.Clone(all), newStream(s, id, resource, r.Epoch))
}

// Resources returns the recorded resources, ordered by name, in the API version of their newest
// epoch.
func (s *Store) Resources() []kube.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []kube.Resource
	for _, streams := range s.streams {
		all = append(all, streams[len(streams)-1].resource)
	}
	slices.SortFunc(all, func(a, b kube.Resource) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// Streams returns the streams of a resource, oldest epoch first; nil if the resource was never
// recorded. They may be of several API versions: see [Stream.Resource].
func (s *Store) Streams(resource kube.Resource) []*Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.streams[resource.GroupResource()])
}

// Stream returns the newest stream of a resource, for its writer. It creates
// one if there is none, or if the newest one is damaged. One of another API version takes no
// events of this one: they need a new epoch.
func (s *Store) Stream(resource kube.Resource) (*Stream, error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.release()
	s.catalogMu.Lock()
	defer s.catalogMu.Unlock()
	if all := s.Streams(resource); len(all) > 0 {
		if newest := all[len(all)-1]; newest.Damage() == nil {
			newest.setHasWriter(true)
			newest.awaitWriter()
			return newest, nil
		}
	}
	return s.newEpoch(resource)
}

// NewEpoch creates a new stream of a resource, for events that do not continue
// the recorded ones, as after a restore of the upstream's etcd. The old stream
// can still be read.
func (s *Store) NewEpoch(resource kube.Resource) (*Stream, error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.release()
	s.catalogMu.Lock()
	defer s.catalogMu.Unlock()
	return s.newEpoch(resource)
}

func (s *Store) newEpoch(resource kube.Resource) (*Stream, error) {
	s.mu.Lock()
	all, id, epoch := slices.Clone(s.streams[resource.GroupResource()]), s.last+1, 0
	s.mu.Unlock()
	if n := len(all); n > 0 {
		newest := all[n-1]
		epoch = newest.epoch + 1
		if newest.resource != resource && newest.Head().RV == 0 && newest.Damage() == nil { // nothing was recorded in that version
			all, id, epoch = all[:n-1], newest.id, newest.epoch
		}
	}
	st := newStream(s, id, resource, epoch)
	if err := s.setJSON(appendKey(nil, tableStream, st.id), streamRecord{resource.Group, resource.Version, resource.Name, epoch}); err != nil {
		return nil, err
	}
	for _, old := range all {
		old.setHasWriter(false)
	}
	st.setHasWriter(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, st.id)
	s.streams[resource.GroupResource()] = append(slices.Clone(all), st)
	return st, nil
}

// allStreams returns all streams, ordered by ID.
func (s *Store) allStreams() (all []*Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, streams := range s.streams {
		all = append(all, streams...)
	}
	slices.SortFunc(all, func(a, b *Stream) int { return cmp.Compare(a.id, b.id) })
	return all
}

// awaitWriter makes the stream wait for what its writer writes first, see Heard.
func (st *Stream) awaitWriter() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.span.To.RV != 0 && st.heard == nil {
		st.heard = make(chan struct{})
	}
}

// hear is called with the lock when the writer has written something.
func (st *Stream) hear() {
	if st.heard != nil {
		close(st.heard)
		st.heard = nil
	}
}

// Heard returns a channel that is closed when the writer has written something. Until then
// nothing is known of the time after the head; nil if the stream does not wait for a writer.
func (st *Stream) Heard() <-chan struct{} {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.heard
}

func (st *Stream) setHasWriter(has bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.hasWriter = has
}
