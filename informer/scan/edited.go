// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"unsafe"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// An Edit replaces a part of a text.
type Edit struct {
	From, To int    // in the text before
	Text     string // instead of it
}

// Edited returns the object that edits make of o, without scanning its text: a part of
// the cost of [ParseObject]. It returns nil if they may change more of an [Object] than
// its resourceVersion and its JSON; then the text has to be parsed.
//
// Both texts have to be valid, and text what the edits make of o.JSON: that is not
// checked. The edits are in order and do not overlap. The result lacks Row and Columns.
//
// Most updates change times, numbers and words in managedFields and in the status. Such
// an edit replaces a part of one value, has neither quotes, nor commas, braces or
// backslashes, and so leaves the structure of the text and the names of its members as
// they are.
func (o *Object) Edited(text string, edits []Edit) *Object {
	var inRV, inManaged int // how much longer these become
	for i := range edits {
		e := &edits[i]
		if !o.inValue(e) {
			return nil
		}
		switch longer := len(e.Text) - (e.To - e.From); {
		case int(o.rvText.from) <= e.From && e.To <= int(o.rvText.to):
			inRV += longer
		case int(o.managed.from) < e.From && e.To < int(o.managed.to):
			inManaged += longer
		case e.From <= int(o.meta.to): // kind and apiVersion precede metadata, as is checked below
			return nil
		}
	}
	shift := func(at uint32) uint32 {
		to := int(at)
		if at >= o.rvText.to {
			to += inRV
		}
		if at >= o.managed.to {
			to += inManaged
		}
		return uint32(to)
	}
	shifted := func(s span) span { return span{shift(s.from), shift(s.to)} }
	out := &Object{
		JSON: text, Key: o.Key, UID: o.UID, APIVersion: o.APIVersion, Kind: o.Kind,
		body: o.body, meta: shifted(o.meta), rvText: shifted(o.rvText), annots: shifted(o.annots), managed: shifted(o.managed),
	}
	if int(out.meta.to) > len(text) { // the others are within
		return nil // these are not the edits
	}
	// The text before metadata is the same.
	for _, s := range [...]*string{&out.Kind, &out.APIVersion} {
		at, within := o.offset(*s)
		if !within || at >= o.meta.from {
			return nil
		}
		*s = text[at:][:len(*s)]
	}
	// moved returns a string of the metadata as a part of the new text, so that the
	// object does not keep the old one in memory.
	moved := func(s string) string {
		at, within := o.offset(s)
		if !within || int(shift(at))+len(s) > len(text) {
			return s
		}
		return text[shift(at):][:len(s)]
	}
	out.Key, out.UID = kube.Key(moved(string(o.Key))), moved(o.UID)
	if len(o.Labels) > 0 {
		out.Labels = make(Labels, len(o.Labels))
		for i, l := range o.Labels {
			out.Labels[i] = Label{moved(l.Key), moved(l.Value)}
		}
	} else {
		out.Labels = o.Labels
	}
	var err error
	if out.RV, err = kube.ParseRV(out.rvText.of(text)); err != nil || out.check() != nil {
		return nil
	}
	return out
}

// offset returns where a part of the object's text begins; false if the string is not a
// part of it, because it is empty or had escapes.
func (o *Object) offset(s string) (at uint32, ok bool) {
	if s == "" {
		return 0, false
	}
	d := uintptr(unsafe.Pointer(unsafe.StringData(s))) - uintptr(unsafe.Pointer(unsafe.StringData(o.JSON)))
	return uint32(d), d < uintptr(len(o.JSON))
}

// plain marks the bytes that have no meaning in JSON's structure.
var plain = func() (all [256]bool) {
	for c := ' '; c <= '~'; c++ {
		all[c] = true
	}
	for _, c := range `"\{}[],` {
		all[c] = false
	}
	return all
}()

// inValue reports whether an edit replaces plain bytes of one value, and is not in the
// name of a member.
func (o *Object) inValue(e *Edit) bool {
	s := o.JSON
	if e.From < 1 || e.From > e.To || e.To >= len(s) || s[e.From-1] == '\\' {
		return false
	}
	for i := e.From; i < e.To; i++ {
		if !plain[s[i]] {
			return false
		}
	}
	for i := range len(e.Text) {
		if !plain[e.Text[i]] {
			return false
		}
	}
	// The next quote is the end of the string that the edit is in, or, if it is in
	// none, the beginning of the next one. A colon follows the name of a member.
	for i := e.To; i+1 < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[i+1] > ' ' && s[i+1] != ':'
		}
	}
	return true
}
