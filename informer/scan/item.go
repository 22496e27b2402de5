// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"unsafe"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// An Item is one object of a list or a watch stream, in JSON or protobuf. Unlike
// those of an [Object], its strings are parts of the reader's buffer and valid
// only until the next item is read, so an object that is not kept costs no
// allocation. [Item.Append] makes a copy.
type Item struct {
	Namespace, Name, UID string
	RV                   uint64

	raw       string
	header    string // the brace, kind and apiVersion that replace the brace of a list's item
	managed   span   // metadata.managedFields in raw, with its comma; JSON only
	annots    span   // metadata.annotations in raw; JSON only
	binary    bool   // raw is protobuf
	trimmed   int    // bytes of raw without managedFields; protobuf only
	endMarked bool   // it has the annotation that ends the initial events
}

// ID returns a copy of the item's key, followed by the UID, and the length of the key.
func (it *Item) ID() (id string, keyLen int) {
	b := it.AppendKey(make([]byte, 0, len(it.Namespace)+1+len(it.Name)+len(it.UID)))
	return string(append(b, it.UID...)), len(b)
}

// AppendKey appends the bytes of the item's [kube.Key].
func (it *Item) AppendKey(dst []byte) []byte {
	if it.Namespace != "" {
		dst = append(append(dst, it.Namespace...), '/')
	}
	return append(dst, it.Name...)
}

// InitialEventsEnd reports whether the item is of the bookmark that ends the
// initial events of a streaming list.
func (it *Item) InitialEventsEnd() bool { return it.endMarked }

// Append appends a copy of the object, with or without metadata.managedFields. In
// JSON, a list's item gets its kind and apiVersion.
func (it *Item) Append(dst []byte, managedFields bool) []byte {
	dst = slices.Grow(dst, it.Size(managedFields))
	if it.binary {
		return appendProtobuf(dst, it.raw, managedFields)
	}
	text := it.raw
	if it.header != "" {
		dst, text = append(dst, it.header...), text[1:]
	}
	if cut := it.managed; !managedFields && cut.to > 0 {
		shift := uint32(len(it.raw) - len(text))
		dst = append(dst, text[:cut.from-shift]...)
		text = text[cut.to-shift:]
	}
	return append(dst, text...)
}

// Sum returns a hash of the object with all its fields, which is the same in a list and in
// a watch, and equal to that of an [Object] with the same JSON. It differs between
// processes.
func (it *Item) Sum() uint64 {
	var h maphash.Hash
	h.SetSeed(sumSeed)
	text := it.raw
	if it.header != "" {
		_, _ = h.WriteString(it.header)
		text = text[1:]
	}
	_, _ = h.WriteString(text)
	return h.Sum64()
}

// Size returns the length of the copy that Append makes.
func (it *Item) Size(managedFields bool) int {
	n := len(it.raw)
	if it.binary {
		if !managedFields {
			n = it.trimmed
		}
		return n
	}
	if it.header != "" {
		n += len(it.header) - 1
	}
	if !managedFields {
		n -= int(it.managed.to - it.managed.from)
	}
	return n
}

// unsafeString returns bytes as a string without a copy. It is valid as long as the
// bytes do not change.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// maxKey limits the bytes of a [kube.Key]. Names have at most 253.
const maxKey = 1 << 12

// check is [Object.check] for items.
func (it *Item) check() error {
	if it.Name == "" || it.RV == 0 {
		return fmt.Errorf("%w: %q has no name or resourceVersion", ErrNotObject, it.Name)
	}
	if n := len(it.Namespace) + 1 + len(it.Name); n > maxKey {
		return fmt.Errorf("%w: a name and namespace of %d bytes", ErrNotObject, n)
	}
	return nil
}

// An ItemEvent is one frame of a watch stream with an [Item].
type ItemEvent struct {
	Type kube.EventType
	Item Item // not set for an ERROR
	// Status is the JSON or protobuf of an ERROR's object.
	Status []byte
}

// Scan parses a watch event in JSON. The event refers to text. Errors wrap
// [ErrSyntax] or [ErrNotObject].
func (e *ItemEvent) Scan(text []byte) error {
	*e = ItemEvent{}
	object := false
	p := scanner{s: unsafeString(text)}
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

// eventType returns a type that does not refer to s.
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
			e.Item.endMarked = Lookup(annots, initialEventsEnd) == "true"
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
		before := p.i // at the comma, except of the first member
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
				// The next member's comma is cut instead.
				before = from - len(`"managedFields":`)
				if p.s[before] != '"' || p.next() != ',' {
					continue // not compact JSON, or no next member: keep it
				}
				p.space()
				it.managed = span{uint32(before - start), uint32(p.i + 1 - start)}
				continue
			}
			it.managed = span{uint32(before - start), uint32(p.i - start)}
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
	return itemEntry(object, "labels", key)
}

// itemEntry returns a text in a map of the metadata of an object in JSON.
func itemEntry(object []byte, in, key string) (value string, ok bool) {
	p := scanner{s: unsafeString(object)}
	if !p.find("metadata") || !p.find(in) || !p.find(key) || !p.at('"') {
		return "", false
	}
	value, err := p.text()
	return strings.Clone(value), err == nil
}

// find moves to the value of a member of the object at the scanner's position.
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
