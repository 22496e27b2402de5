// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"iter"
	"strconv"
	"strings"
	"time"
)

// ItemAnnotation returns an annotation of an object in JSON.
func ItemAnnotation(object []byte, key string) (value string, ok bool) {
	return itemEntry(object, "annotations", key)
}

// ProtobufAnnotation returns an annotation of an object's message.
func ProtobufAnnotation(object []byte, key string) (value string, ok bool) {
	return protobufEntry(object, metaAnnotations, key)
}

// ItemDeletion returns metadata.deletionTimestamp of an object in JSON; the zero time if it
// has none.
func ItemDeletion(object []byte) time.Time {
	at, _ := time.Parse(time.RFC3339, Lookup(unsafeString(object), "metadata", "deletionTimestamp")) // zero if it is no time
	return at
}

// ProtobufDeletion returns metadata.deletionTimestamp of an object's message; the zero time
// if it has none.
func ProtobufDeletion(object []byte) time.Time {
	meta, err := message(unsafeString(object)).delimited(1)
	if err != nil {
		return time.Time{}
	}
	at, err := meta.delimited(metaDeletion)
	if err != nil || at == "" {
		return time.Time{}
	}
	seconds, err := at.varint(1)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// ItemFinalizers returns the finalizers of an object in JSON.
func ItemFinalizers(object []byte) (all []string) {
	p := scanner{s: unsafeString(object)}
	if !p.find("metadata") || !p.find("finalizers") || !p.at('[') {
		return nil
	}
	for first := true; ; first = false {
		if more, err := p.element(first); err != nil || !more || !p.at('"') {
			return all
		}
		name, err := p.text()
		if err != nil {
			return all
		}
		all = append(all, strings.Clone(name))
	}
}

// ProtobufFinalizers returns the finalizers of an object's message.
func ProtobufFinalizers(object []byte) (all []string) {
	meta, err := message(unsafeString(object)).delimited(1)
	for err == nil && meta != "" {
		var field uint64
		var value message
		if field, value, _, err = meta.next(); err == nil && field == metaFinalizers {
			all = append(all, strings.Clone(string(value)))
		}
	}
	return all
}

// An Owner is an element of metadata.ownerReferences.
type Owner struct {
	APIVersion, Kind, Name, UID string
	Controller                  bool // the owner is the object's controller
}

// Clone returns an owner that does not refer to the text of its object.
func (o Owner) Clone() Owner {
	return Owner{strings.Clone(o.APIVersion), strings.Clone(o.Kind), strings.Clone(o.Name), strings.Clone(o.UID), o.Controller}
}

// ItemOwners yields the owners of an object in JSON. They refer to its text.
func ItemOwners(object []byte) iter.Seq[Owner] {
	return func(yield func(Owner) bool) {
		p := scanner{s: unsafeString(object)}
		if !p.find("metadata") || !p.find("ownerReferences") || !p.at('[') {
			return
		}
		for first := true; ; first = false {
			if more, err := p.element(first); err != nil || !more || !p.at('{') {
				return
			}
			if o, err := p.owner(); err != nil || !yield(o) {
				return
			}
		}
	}
}

func (p *scanner) owner() (o Owner, err error) {
	for first := true; ; first = false {
		member, ok, err := p.member(first)
		if err != nil || !ok {
			return o, err
		}
		switch member {
		case "apiVersion":
			o.APIVersion, err = p.textOrNull()
		case "kind":
			o.Kind, err = p.textOrNull()
		case "name":
			o.Name, err = p.textOrNull()
		case "uid":
			o.UID, err = p.textOrNull()
		case "controller":
			o.Controller = p.at('t')
			err = p.skip()
		default:
			err = p.skip()
		}
		if err != nil {
			return o, err
		}
	}
}

// ProtobufOwners yields the owners of an object's message. They refer to it.
func ProtobufOwners(object []byte) iter.Seq[Owner] {
	return func(yield func(Owner) bool) {
		meta, err := message(unsafeString(object)).delimited(1)
		for err == nil && meta != "" {
			var field uint64
			var ref message
			if field, ref, _, err = meta.next(); err != nil || field != metaOwnerReferences {
				continue
			}
			isController, err := ref.varint(6)
			if err != nil {
				continue
			}
			o := Owner{Controller: isController != 0}
			for number, to := range map[uint64]*string{1: &o.Kind, 3: &o.Name, 4: &o.UID, 5: &o.APIVersion} {
				value, _ := ref.delimited(number) // varint has found no error
				*to = string(value)
			}
			if !yield(o) {
				return
			}
		}
	}
}

// ItemGeneration returns metadata.generation of an object in JSON, 0 if it has none.
func ItemGeneration(object []byte) int64 {
	n, _ := strconv.ParseInt(Lookup(unsafeString(object), "metadata", "generation"), 10, 64) // 0 if it is no number
	return n
}

// ProtobufGeneration returns metadata.generation of an object's message, 0 if it has
// none.
func ProtobufGeneration(object []byte) int64 {
	meta, err := message(unsafeString(object)).delimited(1)
	if err != nil {
		return 0
	}
	n, _ := meta.varint(metaGeneration) // 0 after an error
	return int64(n)
}
