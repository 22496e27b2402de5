// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// formatVersion is what this code writes, and the newest that it reads.
const formatVersion = 1

// The keys of the store. The first byte is the table. A stream is one resource
// in one epoch: what the upstream numbers anew, after a restore of its etcd, is
// another stream. Numbers are big endian, so that keys are in their order; of
// those in values, "uvarint" are as encoding/binary has them, and times are in
// ms since 1970.
//
//	F                              the format and the cluster, JSON
//	O                              it is open, or was when the program ended
//	S stream                       the resource and the epoch, JSON
//	B stream                       the form of lists and bookmarks, JSON
//	R stream                       rv, time: the oldest state that is retained
//	H stream                       rv, time: the head, up to which all is recorded
//	V stream object 0 rv           a version of an object
//	N stream object                when there last was one: born, died, and 1 if
//	                               there were others before (uvarint, uvarint, byte)
//	L stream rv object             the version that the rv made: flags, at
//	T stream time                  rv: the head at that time
//	G stream from                  to, time, time: nothing between was observed
//	C stream id                    columnDefinitions of Tables
//
// object is namespace/name, or name. With it in front, the versions of one
// object are neighbours. The value of a version is
//
//	flags     1 byte: type (2 bits), inferred, delta
//	at        uvarint: when it was observed
//	base      uvarint, of a delta: by how much the rv is above that of the
//	          version before it, which the delta is to be applied to
//	text      the text, or its delta (delta.go), to the end
//
// and the text is that of the object, how the API server prints it (scan.Object
// Row), and the number of the columns that is under, with a 0 between.
//
// The versions up to the retained moment are what each object was then; they
// have no entry in the log. Where the log has some, a removal of what is older
// than that (retain.go) is not done yet.
const (
	tableFormat   = 'F'
	tableOpen     = 'O'
	tableStream   = 'S'
	tableForm     = 'B'
	tableRetained = 'R'
	tableHead     = 'H'
	tableVersions = 'V'
	tableNames    = 'N'
	tableLog      = 'L'
	tableTimes    = 'T'
	tableGaps     = 'G'
	tableColumns  = 'C'
)

// streamTables are the tables that are of a stream.
var streamTables = []byte{
	tableStream, tableForm, tableRetained, tableHead, tableVersions, tableNames, tableLog, tableTimes, tableGaps, tableColumns,
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

// appendFlags appends what the log knows of a version: its flags, and when it
// was observed.
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

// appendVersion appends all of a version's value but its text.
func appendVersion(b []byte, v version, rv uint64) []byte {
	b = appendFlags(b, v)
	if v.delta {
		b = binary.AppendUvarint(b, rv-v.base)
	}
	return b
}

// parseFlags is the inverse of appendFlags; rest is what is behind.
func parseFlags(b []byte) (v version, rest []byte, err error) {
	if len(b) == 0 || b[0]&flagType == 0 {
		return v, nil, corrupt("%q is no version", b)
	}
	v.typ, v.inferred, v.delta = eventTypes[b[0]&flagType], b[0]&flagInferred != 0, b[0]&flagDelta != 0
	ms, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return v, nil, corrupt("%q is no version", b)
	}
	v.at = time.UnixMilli(int64(ms))
	return v, b[1+n:], nil
}

func parseVersion(b []byte, rv uint64) (v version, err error) {
	if v, b, err = parseFlags(b); err != nil {
		return v, err
	}
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

// appendMoment appends a moment's rv and time, 16 bytes.
func appendMoment(b []byte, m Moment) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, m.RV), uint64(m.At.UnixMilli()))
}

func parseMoment(b []byte) (Moment, error) {
	if len(b) != 16 {
		return Moment{}, corrupt("%q is no moment", b)
	}
	return Moment{binary.BigEndian.Uint64(b), parseTime(b[8:])}, nil
}

// parseTime reads a time of 8 bytes.
func parseTime(b []byte) time.Time { return time.UnixMilli(int64(binary.BigEndian.Uint64(b))) }

// appendGap appends the value of a gap, 24 bytes; its From is in the key.
func appendGap(b []byte, g Gap) []byte {
	b = binary.BigEndian.AppendUint64(b, g.To)
	b = binary.BigEndian.AppendUint64(b, uint64(g.Since.UnixMilli()))
	return binary.BigEndian.AppendUint64(b, uint64(g.Until.UnixMilli()))
}

func parseGap(from uint64, b []byte) (Gap, error) {
	if len(b) != 24 {
		return Gap{}, corrupt("%q is no gap", b)
	}
	return Gap{From: from, To: binary.BigEndian.Uint64(b), Since: parseTime(b[8:]), Until: parseTime(b[16:])}, nil
}

// formRecord is the record of a form.
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

// parseText returns the object of a version's text. The columns are by number.
func parseText(text string, columns func(id uint64) (string, error)) (*scan.Object, error) {
	json, rest, ok := strings.Cut(text, "\x00")
	row, number, ok2 := strings.Cut(rest, "\x00")
	id, err := strconv.ParseUint(number, 10, 64)
	if !ok || !ok2 || err != nil {
		return nil, corrupt("a version of %d bytes without its parts", len(text))
	}
	o, err := scan.ParseObject(json)
	if err != nil {
		return nil, corrupt("%v", err)
	}
	o.Row = row
	o.Columns, err = columns(id)
	return o, err
}
