// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// formatVersion is what this code writes, and the newest that it reads.
const formatVersion = 1

// The keys of the store. The first byte is the table. A stream is one resource
// in one epoch: what the upstream numbers anew, after a restore of its etcd, is
// another stream. Numbers are big endian, so that keys are in their order.
//
//	F                              the format and the cluster, JSON
//	S stream                       the resource and the epoch, JSON
//	H stream                       rv, ms: all up to it is recorded, as of when
//	V stream object 0 rv           a version of an object
//	L stream rv object             empty: the version that the rv made
//	T stream ms                    rv: the head at that time
//	G stream from                  to, ms, ms: nothing between was observed
//	C stream id                    columnDefinitions of Tables
//
// object is namespace/name, or name. With it in front, the versions of one
// object are neighbours. The value of a version is
//
//	flags     1 byte: type (2 bits), inferred, delta
//	at        uvarint, ms since 1970: when it was observed
//	base      uvarint, of a delta: by how much the rv is above that of the
//	          version before it, which the delta is to be applied to
//	text      the text, or its delta (delta.go), to the end
//
// and the text is that of the object, how the API server prints it (kube.Object
// Row), and the number of the columns that is under, with a 0 between.
const (
	tableFormat   = 'F'
	tableStream   = 'S'
	tableHead     = 'H'
	tableVersions = 'V'
	tableLog      = 'L'
	tableTimes    = 'T'
	tableGaps     = 'G'
	tableColumns  = 'C'
)

// ErrCorrupt marks a store whose content is not what was written to it.
var ErrCorrupt = errors.New("the history is damaged")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// A streamID is the number of a stream.
type streamID uint32

// appendKey appends the beginning of a stream's keys in a table.
func appendKey(b []byte, table byte, s streamID) []byte {
	return binary.BigEndian.AppendUint32(append(b, table), uint32(s))
}

// prefixLen is the length of what appendKey appends.
const prefixLen = 5

func numberKey(table byte, s streamID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(appendKey(make([]byte, 0, prefixLen+8), table, s), n)
}

func appendVersionKey(b []byte, s streamID, key kube.Key, rv uint64) []byte {
	b = append(appendKey(b, tableVersions, s), key...)
	return binary.BigEndian.AppendUint64(append(b, 0), rv)
}

func appendLogKey(b []byte, s streamID, rv uint64, key kube.Key) []byte {
	return append(binary.BigEndian.AppendUint64(appendKey(b, tableLog, s), rv), key...)
}

// parseVersionKey returns the object and the rv of a version's key.
func parseVersionKey(b []byte) (key kube.Key, rv uint64, err error) {
	n := len(b) - 9
	if n < prefixLen || b[n] != 0 {
		return "", 0, corrupt("%q is no key of a version", b)
	}
	return kube.Key(b[prefixLen:n]), binary.BigEndian.Uint64(b[n+1:]), nil
}

// after returns the first key behind all that begin with the prefix.
func after(prefix []byte) []byte {
	b := append([]byte{}, prefix...)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] != 0 {
			return b[:i+1]
		}
	}
	return nil
}

const (
	flagType     = 3
	flagInferred = 4
	flagDelta    = 8
)

var eventTypes = [...]kube.EventType{1: kube.Added, 2: kube.Modified, 3: kube.Deleted}

// A version is the value of a version, parsed.
type version struct {
	typ      kube.EventType
	inferred bool
	at       time.Time
	delta    bool
	base     uint64 // the rv of the version that a delta applies to
	text     []byte // or the delta
}

// appendVersion appends all of a version's value but its text.
func appendVersion(b []byte, v version, rv uint64) []byte {
	flags := byte(0)
	for i, typ := range eventTypes {
		if typ == v.typ {
			flags = byte(i)
		}
	}
	if v.inferred {
		flags |= flagInferred
	}
	if v.delta {
		flags |= flagDelta
	}
	b = binary.AppendUvarint(append(b, flags), uint64(v.at.UnixMilli()))
	if v.delta {
		b = binary.AppendUvarint(b, rv-v.base)
	}
	return b
}

func parseVersion(b []byte, rv uint64) (v version, err error) {
	if len(b) == 0 || b[0]&flagType == 0 {
		return v, corrupt("%q is no version", b)
	}
	v.typ, v.inferred, v.delta = eventTypes[b[0]&flagType], b[0]&flagInferred != 0, b[0]&flagDelta != 0
	ms, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return v, corrupt("%q is no version", b)
	}
	v.at = time.UnixMilli(int64(ms))
	b = b[1+n:]
	if v.delta {
		behind, n := binary.Uvarint(b)
		if n <= 0 || behind == 0 || behind >= rv {
			return v, corrupt("a version at %d that is a delta of no other", rv)
		}
		v.base, b = rv-behind, b[n:]
	}
	v.text = b
	return v, nil
}

// textOf returns the text of a version.
func textOf(o *kube.Object, columns uint64) string {
	return o.JSON + "\x00" + o.Row + "\x00" + strconv.FormatUint(columns, 10)
}

// parseText returns the object of a version's text. The columns are by number.
func parseText(text string, columns func(id uint64) (string, error)) (*kube.Object, error) {
	json, rest, ok := strings.Cut(text, "\x00")
	row, number, ok2 := strings.Cut(rest, "\x00")
	id, err := strconv.ParseUint(number, 10, 64)
	if !ok || !ok2 || err != nil {
		return nil, corrupt("a version of %d bytes without its parts", len(text))
	}
	o, err := kube.ScanObject(json)
	if err != nil {
		return nil, corrupt("%v", err)
	}
	o.Row = row
	o.Columns, err = columns(id)
	return o, err
}
