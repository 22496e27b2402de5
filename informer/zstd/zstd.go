// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package zstd compresses an informer's objects. The first object is the
// dictionary of all later ones, since objects of one resource have most of their
// text in common.
//
//	pods := informer.New(src, resource, codec, informer.Options{Compression: zstd.New()})
package zstd

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A Compression implements informer.Compression for one informer; do not share it
// between informers. Make it with [New]. It is safe for concurrent use.
type Compression struct {
	once sync.Once
	// Set once, with the dictionary; safe for concurrent use from then on.
	enc *zstd.Encoder
	dec *zstd.Decoder
	err error // of creating them
}

// New returns a compression for one informer.
func New() *Compression { return &Compression{} }

// dictionaryID is that of the only dictionary.
const dictionaryID = 1

// learn makes the first object the dictionary.
func (c *Compression) learn(object []byte) {
	text := append([]byte(nil), object...)
	c.enc, c.err = zstd.NewWriter(nil, zstd.WithEncoderDictRaw(dictionaryID, text), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true))
	if c.err == nil {
		c.dec, c.err = zstd.NewReader(nil, zstd.WithDecoderDictRaw(dictionaryID, text), zstd.WithDecoderConcurrency(1))
	}
}

// The first byte of compressed data is the format of the rest.
const (
	stored     = 0
	compressed = 1
)

// Compress implements informer.Compression.
func (c *Compression) Compress(dst, src []byte) []byte {
	c.once.Do(func() { c.learn(src) })
	if c.err != nil || len(src) == 0 {
		return append(append(dst, stored), src...)
	}
	small := c.enc.EncodeAll(src, append(make([]byte, 0, len(src)/4), compressed))
	return append(dst, small...) // a copy without spare capacity
}

// Decompress implements informer.Compression.
func (c *Compression) Decompress(dst, src []byte) ([]byte, error) {
	switch {
	case len(src) > 0 && src[0] == stored:
		return append(dst, src[1:]...), nil
	case len(src) > 0 && src[0] == compressed && c.dec != nil:
		return c.dec.DecodeAll(src[1:], dst)
	}
	return nil, fmt.Errorf("zstd: decompress: %d bytes that Compress has not returned", len(src))
}
