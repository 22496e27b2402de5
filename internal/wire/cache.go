// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"runtime"
	"sync"
	"weak"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// cacheEntry is about what an entry takes besides its text.
const cacheEntry = 400

// frameShare is the part of a cache's bytes that frames may take: one in so many.
const frameShare = 4

// A Cache holds encodings of objects, so that each is made once while it is in
// use, and the frames of the newest events. It holds a bounded number of bytes
// (T10). It does not keep the objects: what becomes of one that nobody else
// holds any more is dropped.
//
// What has to make room is chosen at random. A list that is larger than the
// cache, wanted again and again, still finds a part of itself here; if what was
// not wanted for longest had to go, each item would go just before its turn.
type Cache struct {
	max    int64 // without the frames
	frames frames

	mu      sync.Mutex // guards what follows
	entries map[cacheKey]*made
	size    int64
}

// An encoding is what of an object an entry holds.
type encoding uint8

const (
	asProtobuf     encoding = iota // the bare message
	asCBOR                         // with kind and apiVersion
	asCBORItem                     // as it stands in a list
	asMetadataJSON                 // metav1.ObjectMeta
	asMetadataProtobuf
	asMetadataCBOR   // PartialObjectMetadata v1
	asMetadataCBORv1 // PartialObjectMetadata v1beta1
	asLastRestart    // of a Pod, in RFC 3339
	asProjection     // see projection
)

type cacheKey struct {
	object weak.Pointer[scan.Object]
	as     encoding
	fields string // of a projection: its paths
}

// A made is one encoding, made by whoever wants it first.
type made struct {
	once sync.Once
	text string
	err  error

	// Guarded by Cache.mu.
	size    int64 // counted in Cache.size
	cleanup runtime.Cleanup
}

// NewCache returns a cache of at most max bytes.
func NewCache(max int64) *Cache {
	c := &Cache{max: max - max/frameShare, entries: map[cacheKey]*made{}}
	c.frames.most = max / frameShare / frameSlots
	return c
}

// get returns the encoding of an object, which encode makes if need be.
func (c *Cache) get(o *scan.Object, as encoding, encode func(*scan.Object) (string, error)) (string, error) {
	return c.getKey(cacheKey{object: weak.Make(o), as: as}, o, encode)
}

func (c *Cache) getKey(key cacheKey, o *scan.Object, encode func(*scan.Object) (string, error)) (string, error) {
	m := c.entry(key, o)
	m.once.Do(func() {
		m.text, m.err = encode(o)
		c.count(key, m)
	})
	return m.text, m.err
}

func (c *Cache) entry(key cacheKey, o *scan.Object) *made {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.entries[key]
	if !ok {
		m = &made{size: cacheEntry + int64(len(key.fields))}
		m.cleanup = runtime.AddCleanup(o, c.forget, key)
		c.entries[key] = m
		c.size += m.size
	}
	return m
}

// forget drops what was made of an object that is no more.
func (c *Cache) forget(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.entries[key]; ok {
		c.remove(key, m)
	}
}

// hasRoom reports whether more can be entered without something else having to
// go.
func (c *Cache) hasRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size < c.max-c.max/8
}

// remove drops an entry; the caller holds mu.
func (c *Cache) remove(key cacheKey, m *made) {
	delete(c.entries, key)
	c.size -= m.size
}

// count adds the text to the size of an entry, and makes room.
func (c *Cache) count(key cacheKey, m *made) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] == m { // else it is gone already
		m.size += int64(len(m.text))
		c.size += int64(len(m.text))
	}
	for key, old := range c.entries { // in no order
		if c.size <= c.max {
			return
		}
		old.cleanup.Stop()
		c.remove(key, old)
	}
}

// Bytes returns how many bytes the cache holds.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size + c.frames.size.Load()
}
