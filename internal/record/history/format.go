// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// formatVersion is the format that this code writes, and the newest that it
// reads. Format 1 has no steps of the clock.
const formatVersion = 2

// The keys of the store, as docs/format.md describes them. The first byte of a
// key is the table. A stream is one resource in one epoch: when the upstream's
// RVs start over, after a restore of its etcd, a new stream begins. Numbers in
// keys are big endian, so that keys sort by them. In values, "uvarint" is that
// of encoding/binary, and times are in ms since 1970.
//
//	F                    format version and cluster, JSON
//	O                    present while the database is open, or after a crash
//	S stream             resource and epoch, JSON
//	B stream             form of lists and bookmarks, JSON
//	R stream             rv, time: the oldest retained state
//	H stream             rv, time, era: the head; everything up to it is recorded.
//	                     Era 0 may be missing
//	A stream             rv, time, era: the head, if it is at rv, was so until then, too
//	V stream object 0 rv a version of an object
//	N stream object      lifetime of the last object of this name: born, died, and
//	                     1 if there were earlier ones (uvarint, uvarint, byte)
//	L stream rv object   log: the event at rv: flags, at
//	T stream time        rv: the head at that time. The high 16 bits are the era
//	K stream era         rv, from, to: the clock was set back, and the era began
//	G stream from        to, time, time: a gap; nothing between was observed
//	D stream rv time     time: a late gap; nothing between the times was observed
//	C stream id          columnDefinitions of Tables
//
// An object is namespace/name, or name. Since it precedes the RV, the versions
// of one object are neighbors. The value of a version is
//
//	┌────────┬────────────┬──────────────┬─────────────────────────────┐
//	│ flags  │ at         │ base         │ text, or its delta          │
//	│ 1 byte │ uvarint ms │ uvarint      │ to the end                  │
//	└────────┴────────────┴──────────────┴─────────────────────────────┘
//	 type (2    when it     only with a    object JSON, 0, printed row
//	 bits),     was         delta: rv of   (scan.Object.Row), 0, id of
//	 inferred,  observed    this version   the columns in decimal
//	 delta                  minus rv of
//	                        its base
//
// Package delta has the encoding of a delta; its base is the version before it.
//
// At most one version of each object is at or before the oldest retained state:
// the object as it was then. It has no entry in the log. Log entries at or
// before that state are left by an interrupted trim (retention.go), and the
// next trim removes them.
const (
	tableFormat   = 'F'
	tableOpen     = 'O'
	tableStream   = 'S'
	tableForm     = 'B'
	tableRetained = 'R'
	tableHead     = 'H'
	tableObserved = 'A'
	tableVersions = 'V'
	tableNames    = 'N'
	tableLog      = 'L'
	tableTimes    = 'T'
	tableGaps     = 'G'
	tableLate     = 'D'
	tableColumns  = 'C'
	tableClock    = 'K'
)

// streamTables are the tables whose keys contain a stream.
var streamTables = []byte{
	tableStream, tableForm, tableRetained, tableHead, tableObserved, tableVersions, tableNames, tableLog, tableTimes, tableGaps, tableLate, tableColumns, tableClock,
}

// A streamID is the number of a stream in keys.
type streamID uint32

// appendKey appends the prefix of a stream's keys in a table.
func appendKey(b []byte, table byte, s streamID) []byte {
	return binary.BigEndian.AppendUint32(append(b, table), uint32(s))
}

// prefixLen is the length of that prefix.
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

// parseVersionKey returns the object and the RV in a version's key.
func parseVersionKey(b []byte) (key kube.Key, rv uint64, err error) {
	n := len(b) - 9
	if n < prefixLen || b[n] != 0 {
		return "", 0, corrupt("%q is not the key of a version", b)
	}
	return kube.Key(b[prefixLen:n]), binary.BigEndian.Uint64(b[n+1:]), nil
}

// prefixEnd returns the first key after all keys with the prefix.
func prefixEnd(prefix []byte) []byte {
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

// A version is the parsed value of a version.
type version struct {
	typ      kube.EventType
	inferred bool
	at       time.Time
	delta    bool
	base     uint64 // with delta: RV of the version that it applies to
	text     []byte // the text or the delta
}

// appendFlags appends the part of a version that the log has, too: its flags,
// and when it was observed.
func appendFlags(b []byte, v version) []byte {
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
	return binary.AppendUvarint(append(b, flags), uint64(v.at.UnixMilli()))
}

// appendVersion appends the value of a version, except its text.
func appendVersion(b []byte, v version, rv uint64) []byte {
	b = appendFlags(b, v)
	if v.delta {
		b = binary.AppendUvarint(b, rv-v.base)
	}
	return b
}

// parseFlags is the inverse of appendFlags; rest is what follows.
func parseFlags(b []byte) (v version, rest []byte, err error) {
	if len(b) == 0 || b[0]&flagType == 0 {
		return v, nil, corrupt("%q is not a version", b)
	}
	v.typ, v.inferred, v.delta = eventTypes[b[0]&flagType], b[0]&flagInferred != 0, b[0]&flagDelta != 0
	ms, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return v, nil, corrupt("%q is not a version", b)
	}
	v.at = time.UnixMilli(int64(ms))
	return v, b[1+n:], nil
}

func parseVersion(b []byte, rv uint64) (v version, err error) {
	if v, b, err = parseFlags(b); err != nil {
		return v, err
	}
	if v.delta {
		distance, n := binary.Uvarint(b)
		if n <= 0 || distance == 0 || distance >= rv {
			return v, corrupt("the delta at %d has no base", rv)
		}
		v.base, b = rv-distance, b[n:]
	}
	v.text = b
	return v, nil
}

// appendMoment appends an RV and a time, 16 bytes.
func appendMoment(b []byte, m Moment) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, m.RV), uint64(m.At.UnixMilli()))
}

func parseMoment(b []byte) (Moment, error) {
	if len(b) != 16 {
		return Moment{}, corrupt("%q is not a moment", b)
	}
	return Moment{binary.BigEndian.Uint64(b), parseTime(b[8:])}, nil
}

// parseTime reads a time of 8 bytes.
func parseTime(b []byte) time.Time { return time.UnixMilli(int64(binary.BigEndian.Uint64(b))) }

// formRecord is the record of a Form at tableForm.
type formRecord struct {
	ListKind   string `json:"listKind"`
	Item       string `json:"item"`
	Row        string `json:"row,omitempty"`
	Columns    string `json:"columns,omitempty"`
	Definition string `json:"definition,omitempty"`
}

// appendText appends the text of a version.
func appendText(b []byte, o *scan.Object, columns uint64) []byte {
	b = append(append(b, o.JSON...), 0)
	b = append(append(b, o.Row...), 0)
	return strconv.AppendUint(b, columns, 10)
}

// A lifetime is that of the last object of a name.
type lifetime struct {
	born, died uint64 // RVs; died is 0 while the object exists
	earlier    bool   // there were earlier objects of this name
}

// covers reports whether an object of this name may have existed at rv.
func (l lifetime) covers(rv uint64) bool {
	if rv < l.born {
		return l.earlier
	}
	return l.died == 0 || rv < l.died
}

func appendLifetime(b []byte, l lifetime) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, l.born), l.died)
	if l.earlier {
		b = append(b, 1)
	}
	return b
}

func parseLifetime(b []byte) (l lifetime, err error) {
	born, n := binary.Uvarint(b)
	died, m := binary.Uvarint(b[max(n, 0):])
	if n <= 0 || m <= 0 || len(b) > n+m+1 {
		return l, corrupt("%q is not a lifetime", b)
	}
	return lifetime{born, died, len(b) > n+m}, nil
}

func appendNameKey(b []byte, s streamID, key kube.Key) []byte {
	return append(appendKey(b, tableNames, s), key...)
}

// parseTimes reads an entry of tableTimes.
func parseTimes(key, value []byte) (Moment, error) {
	if len(key) != prefixLen+8 || len(value) != 8 {
		return Moment{}, corrupt("%q is not a time", key)
	}
	at := time.UnixMilli(int64(binary.BigEndian.Uint64(key[prefixLen:]) & (1<<48 - 1)))
	return Moment{binary.BigEndian.Uint64(value), at}, nil
}
