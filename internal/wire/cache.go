// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"container/list"
	"sync"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// cacheEntry is about what an entry takes besides its texts.
const cacheEntry = 512

// frameShare is the part of a cache's bytes that frames may take: one in so many.
const frameShare = 4

// A Cache holds encodings of objects, so that each is made once while it is in
// use, and the frames of the newest events. It holds a bounded number of bytes,
// counting the objects that it keeps alive, and drops what was not wanted for
// longest (T10).
type Cache struct {
	max    int64 // without the frames
	frames frames

	mu      sync.Mutex // guards what follows
	entries map[cacheKey]*list.Element
	order   *list.List // most recently wanted first
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
)

type cacheKey struct {
	object *kube.Object
	as     encoding
}

// A made is one encoding, made by whoever wants it first.
type made struct {
	key  cacheKey
	once sync.Once
	text string
	err  error
	size int64 // counted in Cache.size; guarded by its mu
}

// NewCache returns a cache of at most max bytes.
func NewCache(max int64) *Cache {
	c := &Cache{max: max - max/frameShare, entries: map[cacheKey]*list.Element{}, order: list.New()}
	c.frames.most = max / frameShare / frameSlots
	return c
}

// get returns the encoding of an object, which encode makes if need be.
func (c *Cache) get(o *kube.Object, as encoding, encode func(*kube.Object) (string, error)) (string, error) {
	m := c.entry(cacheKey{o, as})
	m.once.Do(func() {
		m.text, m.err = encode(o)
		c.count(m, int64(len(o.JSON)+len(o.Row)+len(m.text)))
	})
	return m.text, m.err
}

func (c *Cache) entry(k cacheKey) *made {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[k]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*made)
	}
	m := &made{key: k, size: cacheEntry}
	c.entries[k] = c.order.PushFront(m)
	c.size += m.size
	return m
}

// count adds to the size of an entry, and makes room.
func (c *Cache) count(m *made, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[m.key]; ok && e.Value == m { // else it is gone already
		m.size += size
		c.size += size
	}
	for c.size > c.max {
		last := c.order.Back()
		old := c.order.Remove(last).(*made)
		delete(c.entries, old.key)
		c.size -= old.size
	}
}

// Bytes returns how many bytes the cache holds.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size + c.frames.size.Load()
}
