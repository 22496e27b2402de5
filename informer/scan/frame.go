// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
)

// initialEventsEnd is the annotation on the bookmark that ends the initial
// events of a streaming list (KEP-3157).
const initialEventsEnd = "k8s.io/initial-events-end"

// A Frame is one event of a watch stream.
type Frame struct {
	Type kube.EventType
	// Object is the event's object, nil for an ERROR. The object of a BOOKMARK
	// has no name.
	Object *Object
	// Status is the JSON of an ERROR's object.
	Status string
}

// Scan is [ParseFrame] for a text that does not stay: the frame refers to it until Detach.
func (f *Frame) Scan(text []byte) (err error) {
	*f, err = ParseFrame(unsafeString(text))
	return err
}

// ParseFrame parses a watch event. Of a Table, the object is that of its only row.
// Errors wrap [ErrSyntax], [ErrNotObject] or [ErrBareTable].
func ParseFrame(text string) (Frame, error) {
	var f Frame
	var t table
	p := scanner{s: text, table: &t}
	for first := true; ; first = false {
		name, ok, err := p.member(first)
		if err != nil {
			return Frame{}, err
		}
		if !ok {
			break
		}
		switch name {
		case "type":
			var s string
			s, err = p.text()
			f.Type = eventType(s)
		case "object":
			t = table{}
			f.Object, err = p.kubeObject()
		default:
			err = p.skip()
		}
		if err != nil {
			return Frame{}, err
		}
	}
	if err := p.end(); err != nil {
		return Frame{}, err
	}
	if f.Object == nil {
		return Frame{}, fmt.Errorf("%w: a watch event without an object", ErrNotObject)
	}
	if isTable(f.Object.Kind, f.Object.APIVersion) {
		if len(t.objects) != 1 {
			return Frame{}, fmt.Errorf("%w: a watch event with a Table of %d rows", ErrNotObject, len(t.objects))
		}
		f.Object = t.objects[0]
		f.Object.Columns = t.columns
	}
	switch f.Type {
	case kube.Added, kube.Modified, kube.Deleted:
		return f, f.Object.check()
	case kube.Bookmark:
		if f.Object.RV == 0 {
			return Frame{}, fmt.Errorf("%w: a bookmark without a resourceVersion", ErrNotObject)
		}
		return f, nil
	case kube.Error:
		f.Status, f.Object = f.Object.JSON, nil
		return f, nil
	default:
		return Frame{}, fmt.Errorf("%w: a watch event of type %q", ErrNotObject, f.Type)
	}
}

// Detach makes the frame's object independent of the frame's text: it gets a copy of its
// own part, and the columns of its stream, which only the first frame has. An ERROR's
// Status still refers to the text.
func (f Frame) Detach(columns string) {
	if f.Object != nil {
		f.Object.detach(columns)
	}
}

// InitialEventsEnd reports whether the frame is the bookmark that ends the
// initial events of a streaming list.
func (f Frame) InitialEventsEnd() bool {
	return f.Type == kube.Bookmark && f.Object.InitialEventsEnd()
}

// InitialEventsEnd reports whether the object has the annotation of the bookmark
// that ends the initial events.
func (o *Object) InitialEventsEnd() bool {
	return strings.Contains(o.Annotations(), initialEventsEnd) && o.annotations()[initialEventsEnd] == "true"
}

// BookmarkObject returns the object of a bookmark at rv. The template is the object
// of a bookmark that the API server sent, or [List.EmptyItem]: the result has its
// annotations, which some types default, its row, and the members that the API
// server's encoder does not omit. With end it ends the initial events.
func BookmarkObject(template *Object, rv uint64, end bool) *Object {
	var annotations map[string]string
	if end {
		annotations = map[string]string{initialEventsEnd: "true"}
	}
	return AnnotatedBookmark(template, rv, annotations)
}

// AnnotatedBookmark is [BookmarkObject] with further annotations.
func AnnotatedBookmark(template *Object, rv uint64, annotations map[string]string) *Object {
	p := scanner{s: bookmarkJSON(template, rv, annotations)}
	o, err := p.kubeObject()
	if err != nil {
		panic(err) // the parts of the text are valid
	}
	o.Row, o.Columns = template.Row, template.Columns
	return o
}

func bookmarkJSON(template *Object, rv uint64, more map[string]string) string {
	before, _, after := template.Metadata()
	version := `"resourceVersion":"` + kube.FormatRV(rv) + `"`
	annotations := template.annotations()
	delete(annotations, initialEventsEnd)
	maps.Copy(annotations, more)
	if len(annotations) == 0 {
		return before + "{" + version + "}" + after
	}
	text, _ := json.Marshal(annotations) // strings have no errors; keys are sorted
	member := `"annotations":` + string(text)
	if template.Typed() {
		return before + "{" + version + "," + member + "}" + after
	}
	return before + "{" + member + "," + version + "}" + after // keys in alphabetical order
}

// annotations returns metadata.annotations; never nil.
func (o *Object) annotations() map[string]string {
	all := map[string]string{}
	if text := o.Annotations(); text != "" {
		if json.Unmarshal([]byte(text), &all) != nil {
			clear(all) // a value is not a string
		}
	}
	return all
}
