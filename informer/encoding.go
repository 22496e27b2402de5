// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bufio"
	"fmt"
	"io"
	"net/url"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A form reads the lists and watch streams of one encoding. O is what an object
// is to the sink.
type form[O any] interface {
	// accept returns the media types to ask for, and sets what goes with them
	// in the query.
	accept(query url.Values) string
	// list reads the body of a LIST and returns its head; like is of the
	// collection's lists.
	list(body io.Reader, like *scan.List, item func(O)) (*scan.List, error)
	// watch reads the body of a watch; streaming tells that it begins with a
	// list.
	watch(body io.Reader, streaming bool) frames[O]
	// plainer turns to a plainer form for an upstream that cannot do this one,
	// if there is one.
	plainer() bool
}

const (
	acceptJSON  = "application/json"
	acceptTable = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"
)

// objectForm is JSON for a sink that keeps objects as they are, and that may
// want to know how the upstream prints them. Its objects are the sink's to
// keep. Lists are read as a whole.
type objectForm struct {
	kind    string // of the items; "" to tell from the list's
	tables  bool
	columns string // of the last list or stream that told them
}

func (f *objectForm) accept(query url.Values) string {
	if !f.tables {
		return acceptJSON
	}
	query.Set("includeObject", "Object")
	return acceptTable
}

func (f *objectForm) plainer() bool {
	was := f.tables
	f.tables = false
	return was
}

func (f *objectForm) list(body io.Reader, _ *scan.List, item func(*scan.Object)) (*scan.List, error) {
	list, err := scanPage(body, f.kind)
	if err != nil {
		return nil, err
	}
	f.columns = list.Columns
	for _, o := range list.Items {
		item(o)
	}
	list.Items = nil
	return list, nil
}

func (f *objectForm) watch(body io.Reader, streaming bool) frames[*scan.Object] {
	return &objectFrames{lines: lines{body: bufio.NewReaderSize(body, frameBuffer)}, form: f, initial: streaming}
}

const acceptProtobuf = "application/vnd.kubernetes.protobuf"

// itemForm is JSON or protobuf for a sink that takes of an object what it wants
// while it stands in the buffer. Lists are read item by item.
type itemForm struct{ protobuf bool }

func (f itemForm) accept(url.Values) string {
	if f.protobuf {
		return acceptProtobuf
	}
	return acceptJSON
}

func (itemForm) plainer() bool { return false }

func (f itemForm) list(body io.Reader, like *scan.List, item func(*scan.Item)) (*scan.List, error) {
	var it scan.Item
	var list interface {
		Next(*scan.Item) (bool, error)
		Head() *scan.List
	}
	if f.protobuf {
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
			return list.Head(), nil
		}
		item(&it)
	}
}

func (f itemForm) watch(body io.Reader, _ bool) frames[*scan.Item] {
	l := lines{body: bufio.NewReaderSize(body, frameBuffer)}
	if f.protobuf {
		return &binaryFrames{lines: l}
	}
	return &textFrames{lines: l}
}
