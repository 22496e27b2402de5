// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// An Item is one object in a list or a watch stream, found by a scan of its
// bytes, in JSON or in protobuf. Unlike an [Object] it is nobody's to keep: its
// strings are parts of the reader's buffer and stand until the next one is
// read, so that an object that nobody wants costs no allocation. [Item.Append]
// makes a copy.
type Item struct {
	Namespace, Name, UID string
	RV                   uint64

	raw    string
	head   string // what a list leaves out behind the opening brace of its items
	cut    span   // metadata.managedFields in raw, with its comma; JSON only
	annots span   // metadata.annotations in raw; JSON only
	binary bool   // raw is protobuf
	rest   int    // bytes of raw without managedFields; protobuf only
	end    bool   // it has the annotation that ends the initial events
}

// AppendKey appends "namespace/name", or "name" where there is no namespace: the
// bytes of a [Key].
func (it *Item) AppendKey(dst []byte) []byte {
	if it.Namespace != "" {
		dst = append(append(dst, it.Namespace...), '/')
	}
	return append(dst, it.Name...)
}

// InitialEventsEnd reports whether the item is that of the bookmark which ends
// the initial events of a streaming list.
func (it *Item) InitialEventsEnd() bool { return it.end }

// Append appends a copy of the object, without metadata.managedFields where
// these are to be left out. A list's item gets its kind and apiVersion, in JSON.
func (it *Item) Append(dst []byte, managedFields bool) []byte {
	dst = slices.Grow(dst, it.Size(managedFields))
	if it.binary {
		return appendProtobuf(dst, it.raw, managedFields)
	}
	text := it.raw
	if it.head != "" {
		dst, text = append(dst, it.head...), text[1:]
	}
	if cut := it.cut; !managedFields && cut.to > 0 {
		shift := uint32(len(it.raw) - len(text))
		dst = append(dst, text[:cut.from-shift]...)
		text = text[cut.to-shift:]
	}
	return append(dst, text...)
}

// Size returns how long the copy will be.
func (it *Item) Size(managedFields bool) int {
	n := len(it.raw)
	if it.binary {
		if !managedFields {
			n = it.rest
		}
		return n
	}
	if it.head != "" {
		n += len(it.head) - 1
	}
	if !managedFields {
		n -= int(it.cut.to - it.cut.from)
	}
	return n
}

// view returns bytes as a string without a copy: the scanner reads strings, and
// readers read into buffers. It stands as long as the bytes do not change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// check is [Object.check] for items.
func (it *Item) check() error {
	if it.Name == "" || it.RV == 0 {
		return fmt.Errorf("%w: %q has no name or resourceVersion", ErrNotObject, it.Name)
	}
	return nil
}

// An ItemEvent is one frame of a watch stream with an [Item].
type ItemEvent struct {
	Type kube.EventType
	Item Item // of all but ERROR
	// Status is the JSON or protobuf of an ERROR's object.
	Status []byte
}

// Scan reads a watch event from its JSON, of which it becomes a part. Errors
// wrap [ErrSyntax] or [ErrNotObject].
func (e *ItemEvent) Scan(text []byte) error {
	*e = ItemEvent{}
	object := false
	p := scanner{s: view(text)}
	for first := true; ; first = false {
		name, ok, err := p.member(first)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch name {
		case "type":
			var s string
			s, err = p.text()
			e.Type = eventType(s)
		case "object":
			from := p.i
			err = p.item(&e.Item)
			e.Status, object = text[from:p.i], true
		default:
			err = p.skip()
		}
		if err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	if !object {
		return fmt.Errorf("%w: a watch event without an object", ErrNotObject)
	}
	return e.check()
}

// eventType returns a type that does not keep s alive.
func eventType(s string) kube.EventType {
	for _, t := range []kube.EventType{kube.Added, kube.Modified, kube.Deleted, kube.Bookmark, kube.Error} {
		if string(t) == s {
			return t
		}
	}
	return kube.EventType(strings.Clone(s))
}

func (e *ItemEvent) check() error {
	switch e.Type {
	case kube.Added, kube.Modified, kube.Deleted:
		return e.Item.check()
	case kube.Bookmark:
		if e.Item.RV == 0 {
			return fmt.Errorf("%w: a bookmark without a resourceVersion", ErrNotObject)
		}
		if annots := e.Item.annots.of(e.Item.raw); strings.Contains(annots, initialEventsEnd) {
			e.Item.end = Lookup(annots, initialEventsEnd) == "true"
		}
		return nil
	case kube.Error:
		e.Item = Item{}
		return nil
	}
	return fmt.Errorf("%w: a watch event of type %q", ErrNotObject, e.Type)
}

// item consumes an object.
func (p *scanner) item(it *Item) error {
	p.space()
	start := p.i
	*it = Item{}
	for first := true; ; first = false {
		name, ok, err := p.member(first)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if name == "metadata" && p.at('{') {
			*it = Item{}
			err = p.itemMetadata(it, start)
		} else {
			err = p.skip()
		}
		if err != nil {
			return err
		}
	}
	it.raw = p.s[start:p.i]
	return nil
}

func (p *scanner) itemMetadata(it *Item, start int) error {
	for first := true; ; first = false {
		before := p.i // the comma, if there is one
		member, ok, err := p.member(first)
		if err != nil || !ok {
			return err
		}
		from := p.i
		switch member {
		case "name":
			it.Name, err = p.textOrNull()
		case "namespace":
			it.Namespace, err = p.textOrNull()
		case "uid":
			it.UID, err = p.textOrNull()
		case "resourceVersion":
			var digits string
			if digits, err = p.rawOrNull(); err == nil {
				if it.RV, err = kube.ParseRV(digits); err != nil {
					err = fmt.Errorf("%w: %w", ErrNotObject, err)
				}
			}
		case "annotations":
			err = p.skip()
			it.annots = span{uint32(from - start), uint32(p.i - start)}
		case "managedFields":
			if err = p.skip(); err != nil {
				return err
			}
			if first {
				// What follows would begin with a comma: it goes too.
				before = from - len(`"managedFields":`)
				if p.s[before] != '"' || p.next() != ',' {
					continue // written in another way: it stays
				}
				p.space()
				it.cut = span{uint32(before - start), uint32(p.i + 1 - start)}
				continue
			}
			it.cut = span{uint32(before - start), uint32(p.i - start)}
		default:
			err = p.skip()
		}
		if err != nil {
			return err
		}
	}
}

// ItemLabel returns the value of a label of an object in JSON.
func ItemLabel(object []byte, key string) (value string, ok bool) {
	p := scanner{s: view(object)}
	if !p.find("metadata") || !p.find("labels") || !p.find(key) || !p.at('"') {
		return "", false
	}
	value, err := p.text()
	return strings.Clone(value), err == nil
}

// find goes to the value of a member of the object that the scanner is at.
func (p *scanner) find(member string) bool {
	if p.next() != '{' {
		return false
	}
	for first := true; ; first = false {
		name, ok, err := p.member(first)
		if err != nil || !ok {
			return false
		}
		if name == member {
			return true
		}
		if p.skip() != nil {
			return false
		}
	}
}
