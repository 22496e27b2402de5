// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bufio"
	"fmt"
	"io"
	"net/url"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

const (
	acceptJSON     = "application/json"
	acceptProtobuf = "application/vnd.kubernetes.protobuf"
	asMetadata     = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	acceptTable    = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"
)

// An Encoding reads the lists and watch streams of one media type. O is how it
// represents an object to the sink. Make it with [Items] or [Objects].
type Encoding[O any] interface {
	// accept returns the Accept header, and sets the query parameters that the
	// encoding requires.
	accept(query url.Values) string
	// list reads the body of a LIST, calls item for each object until that fails, and
	// returns the list's metadata. like is that of the collection's lists.
	list(body io.Reader, like *scan.List, item func(O) error) (*scan.List, error)
	// watch reads the body of a watch.
	watch(body io.Reader) frames[O]
	// asksTables reports whether the encoding asks for Tables.
	asksTables() bool
	// dropTables stops asking for Tables. It returns false if the encoding
	// does not ask for them.
	dropTables() bool
	// dropProtobuf asks for JSON instead of protobuf from now on. It returns false if the
	// encoding does so already.
	dropProtobuf() bool
	// rv returns an object's RV.
	rv(O) uint64
	// known returns what identifies an object's version. It stays valid.
	known(o O, deleted bool) Known
}

// Items returns the encoding of JSON or protobuf for a sink that copies objects, whole ones
// or their metadata: an object is valid only during the call. Lists are read object by
// object, so that a list is never in memory as a whole. From an upstream that does not offer
// protobuf (406), as an aggregated one may, objects come in JSON.
func Items(protobuf, metadataOnly bool) Encoding[*scan.Item] {
	return &itemEncoding{protobuf, metadataOnly}
}

// Objects returns the encoding of JSON for a sink that keeps objects as they are. Lists are
// read as a whole. With tables, the upstream is asked for Tables (as=Table,
// includeObject=Object), so that each object comes with its row. An upstream that does not
// implement Tables sends plain objects.
func Objects(tables bool) Encoding[*scan.Object] { return &objectEncoding{tables: tables} }

// An itemEncoding is that of [Items].
type itemEncoding struct {
	protobuf bool
	metadata bool // only that of objects is requested
}

func (e *itemEncoding) accept(query url.Values) string {
	accept := acceptJSON
	if e.protobuf {
		accept = acceptProtobuf
	}
	switch {
	case e.metadata && query.Has("watch"):
		accept += asMetadata
	case e.metadata:
		accept += asMetadataList
	}
	return accept
}

func (*itemEncoding) asksTables() bool { return false }

func (*itemEncoding) dropTables() bool { return false }

func (e *itemEncoding) dropProtobuf() bool {
	had := e.protobuf
	e.protobuf = false
	return had
}

func (*itemEncoding) rv(it *scan.Item) uint64 { return it.RV }

func (*itemEncoding) known(it *scan.Item, deleted bool) Known {
	id, n := it.ID()
	return Known{kube.Key(id[:n]), id[n:], it.RV, deleted, it.Sum()}
}

func (e *itemEncoding) list(body io.Reader, like *scan.List, item func(*scan.Item) error) (*scan.List, error) {
	var it scan.Item
	var list interface {
		Next(*scan.Item) (bool, error)
		List() *scan.List
	}
	if e.protobuf {
		list = scan.NewProtobufReader(body, like)
	} else {
		list = scan.NewItemReader(body, like)
	}
	for {
		ok, err := list.Next(&it)
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		if !ok {
			return list.List(), nil
		}
		if err := item(&it); err != nil {
			return nil, err
		}
	}
}

func (e *itemEncoding) watch(body io.Reader) frames[*scan.Item] {
	l := lineReader{body: bufio.NewReaderSize(body, frameBuffer)}
	if e.protobuf {
		return &protobufFrames{lineReader: l}
	}
	return &jsonFrames{lineReader: l}
}

// An objectEncoding is that of [Objects].
type objectEncoding struct {
	tables  bool
	columns string // of the last list, or stream, that had any
}

func (e *objectEncoding) accept(query url.Values) string {
	if !e.tables {
		return acceptJSON
	}
	query.Set("includeObject", "Object")
	return acceptTable
}

func (e *objectEncoding) asksTables() bool { return e.tables }

func (e *objectEncoding) dropTables() bool {
	had := e.tables
	e.tables = false
	return had
}

func (*objectEncoding) dropProtobuf() bool { return false }

func (e *objectEncoding) rv(o *scan.Object) uint64 { return o.RV }

func (e *objectEncoding) known(o *scan.Object, deleted bool) Known { return KnownOf(o, deleted) }

func (e *objectEncoding) list(body io.Reader, like *scan.List, item func(*scan.Object) error) (*scan.List, error) {
	list, err := readPage(body, like.ItemKind)
	if err != nil {
		return nil, err
	}
	e.columns = list.Columns
	for _, o := range list.Items {
		if err := item(o); err != nil {
			return nil, err
		}
	}
	list.Items = nil
	return list, nil
}

func (e *objectEncoding) watch(body io.Reader) frames[*scan.Object] {
	l := lineReader{body: bufio.NewReaderSize(body, frameBuffer)}
	return &objectFrames{lineReader: l, encoding: e}
}
