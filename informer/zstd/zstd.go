// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package zstd keeps an informer's objects compressed. The first object is the
// dictionary of all that follow, since objects of a kind have most of their text
// in common.
//
//	pods := informer.New(src, pods, codec, informer.Options{Compression: zstd.New()})
package zstd

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A Compression is one for an informer, to which it belongs. Make it with
// [New].
type Compression struct {
	once sync.Once
	// Made once, with the dictionary; safe for concurrent use from then on.
	enc *zstd.Encoder
	dec *zstd.Decoder
	err error // of making them
}

// New returns a compression for one informer.
func New() *Compression { return &Compression{} }

// dictionary is the ID of the one there is.
const dictionary = 1

// learn takes the first object as the dictionary.
func (c *Compression) learn(object []byte) {
	text := append([]byte(nil), object...)
	c.enc, c.err = zstd.NewWriter(nil, zstd.WithEncoderDictRaw(dictionary, text), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true))
	if c.err == nil {
		c.dec, c.err = zstd.NewReader(nil, zstd.WithDecoderDictRaw(dictionary, text), zstd.WithDecoderConcurrency(1))
	}
}

// The first byte tells how what follows is kept.
const (
	asIs       = 0
	compressed = 1
)

// Compress implements informer.Compression.
func (c *Compression) Compress(dst, src []byte) []byte {
	c.once.Do(func() { c.learn(src) })
	if c.err != nil || len(src) == 0 {
		return append(append(dst, asIs), src...)
	}
	small := c.enc.EncodeAll(src, append(make([]byte, 0, len(src)/4), compressed))
	return append(dst, small...) // no larger than it needs to be
}

// Decompress implements informer.Compression.
func (c *Compression) Decompress(dst, src []byte) ([]byte, error) {
	switch {
	case len(src) > 0 && src[0] == asIs:
		return append(dst, src[1:]...), nil
	case len(src) > 0 && src[0] == compressed && c.dec != nil:
		return c.dec.DecodeAll(src[1:], dst)
	}
	return nil, fmt.Errorf("zstd: %d bytes that were not compressed here", len(src))
}
