// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"runtime"
	"sync"
	"weak"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// entryOverhead estimates the memory of a cache entry besides its text.
const entryOverhead = 400

// frameShare is the fraction of a cache's bytes that frames may take: a quarter.
const frameShare = 4

// A Cache holds encodings of objects, so that each is made once while it is in
// use, and the frames of the newest events, within a number of bytes (T10). It
// does not keep the objects: when an object is collected, its encodings are
// dropped.
//
// Entries are evicted at random. When a list that is larger than the cache is
// read repeatedly, a part of it is found in the cache; with eviction of the least
// recently used, each item would be evicted just before it is read again.
type Cache struct {
	maxBytes int64 // without the frames
	frames   frames

	mu      sync.Mutex // guards entries, their size and cleanup, and size
	entries map[cacheKey]*cacheEntry
	size    int64
}

// An encoding is what a cache entry holds of an object.
type encoding uint8

const (
	asProtobuf     encoding = iota // the message without its envelope
	asCBOR                         // with kind and apiVersion
	asCBORItem                     // as an item of a list
	asMetadataJSON                 // metav1.ObjectMeta
	asMetadataProtobuf
	asMetadataCBOR      // PartialObjectMetadata v1
	asMetadataCBORBeta1 // PartialObjectMetadata v1beta1
	asLastRestart       // of a Pod, in RFC 3339
	asProjection        // see projection
)

type cacheKey struct {
	object weak.Pointer[scan.Object]
	as     encoding
	fields string // the paths of a projection
}

// A cacheEntry is one encoding, made by the first caller that needs it.
type cacheEntry struct {
	once sync.Once
	text string
	err  error

	// Guarded by Cache.mu.
	size    int64 // counted in Cache.size
	cleanup runtime.Cleanup
}

// NewCache returns a cache of at most maxBytes bytes.
func NewCache(maxBytes int64) *Cache {
	c := &Cache{maxBytes: maxBytes - maxBytes/frameShare, entries: map[cacheKey]*cacheEntry{}}
	c.frames.maxFrame = maxBytes / frameShare / frameSlots
	return c
}

// get returns the encoding of an object; encode makes it if it is not cached.
func (c *Cache) get(o *scan.Object, as encoding, encode func(*scan.Object) (string, error)) (string, error) {
	return c.getKey(cacheKey{object: weak.Make(o), as: as}, o, encode)
}

func (c *Cache) getKey(key cacheKey, o *scan.Object, encode func(*scan.Object) (string, error)) (string, error) {
	e := c.entry(key, o)
	e.once.Do(func() {
		e.text, e.err = encode(o)
		c.count(key, e)
	})
	return e.text, e.err
}

func (c *Cache) entry(key cacheKey, o *scan.Object) *cacheEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		e = &cacheEntry{size: entryOverhead + int64(len(key.fields))}
		e.cleanup = runtime.AddCleanup(o, c.collected, key)
		c.entries[key] = e
		c.size += e.size
	}
	return e
}

// collected drops an encoding of an object that was garbage-collected.
func (c *Cache) collected(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.removeLocked(key, e)
	}
}

func (c *Cache) removeLocked(key cacheKey, e *cacheEntry) {
	delete(c.entries, key)
	c.size -= e.size
}

// count adds the text to the size of its entry, and evicts entries if the cache
// exceeds its bound.
func (c *Cache) count(key cacheKey, e *cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[key] == e { // it has not been evicted
		e.size += int64(len(e.text))
		c.size += int64(len(e.text))
	}
	for key, old := range c.entries { // in random order
		if c.size <= c.maxBytes {
			return
		}
		old.cleanup.Stop()
		c.removeLocked(key, old)
	}
}

// Bytes returns how many bytes the cache holds.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size + c.frames.size.Load()
}
