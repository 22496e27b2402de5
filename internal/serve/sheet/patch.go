// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// FieldManager is the field manager of the patches.
const FieldManager = "watchkeeper-sheet"

// An Operation is one operation of a JSON Patch (RFC 6902).
type Operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Patch returns the JSON Patch that makes the edits to an object, given as JSON as it is now:
//
//   - a test of metadata.uid, so that another object with the same name stays;
//   - for each edit, a test of the value that was read, and then replace, add or remove;
//   - for a value that did not exist, tests that it, or the first object above it that is
//     missing, is null, and adds of the objects above it;
//   - for an element that a condition selects, its index now, and a test of the member.
//
// An edit whose value is there already is left out. One that cannot be made has Refused set
// in the result, which has all edits but those left out. No operation is returned if there is
// no edit to make.
func Patch(live json.RawMessage, o Object) (operations []Operation, edits []Edit, err error) {
	var object any
	decoder := json.NewDecoder(bytes.NewReader(live))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, nil, err
	}
	uid, _ := walk(object, []scan.Step{{Member: "metadata"}, {Member: "uid"}})
	for _, e := range o.Edits {
		if e.Refused == nil && uid.value != o.UID {
			e.Refused = errors.New("it was deleted, and another object has its name now")
		}
		if e.Refused == nil {
			var more []Operation
			if more, e.Refused = patch(&object, e); e.Refused == nil && more == nil {
				continue
			}
			operations = append(operations, more...)
		}
		edits = append(edits, e)
	}
	if len(operations) > 0 {
		operations = slices.Insert(operations, 0, Operation{"test", "/metadata/uid", marshal(o.UID)})
	}
	return operations, edits, nil
}

func marshal(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return text
}

// A place is where a path leads to.
type place struct {
	pointer string
	value   any
	tests   []Operation
	missing []scan.Step // the members that do not exist
}

// walk follows a path as far as it exists.
func walk(object any, steps []scan.Step) (at place, err error) {
	at.value = object
	for i, s := range steps {
		switch {
		case s.Element || s.Where:
			array, ok := at.value.([]any)
			index := s.Index
			if s.Where {
				index = slices.IndexFunc(array, func(element any) bool {
					members, ok := element.(map[string]any)
					return ok && members[s.Member] == s.Value
				})
			}
			if !ok || index < 0 || index >= len(array) {
				return at, errors.New("there is no such element any more")
			}
			at.pointer += "/" + strconv.Itoa(index)
			at.value = array[index]
			if s.Where {
				at.tests = append(at.tests, Operation{"test", at.pointer + "/" + escape(s.Member), marshal(s.Value)})
			}
		default:
			members, ok := at.value.(map[string]any)
			if !ok && at.value != nil {
				return at, errors.New("what is above it is no object any more")
			}
			value, ok := members[s.Member]
			if !ok || value == nil {
				at.value, at.missing = nil, steps[i:]
				for _, m := range at.missing {
					if m.Element || m.Where {
						return at, errors.New("the array is not there: it cannot be made in a cell")
					}
				}
				return at, nil
			}
			at.pointer += "/" + escape(s.Member)
			at.value = value
		}
	}
	return at, nil
}

func escape(member string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(member)
}

// patch returns the operations of one edit, nil if its value is there already, and makes it.
func patch(object *any, e Edit) ([]Operation, error) {
	_, steps, err := scan.ParseSteps(e.Path)
	if err != nil {
		return nil, err
	}
	at, err := walk(*object, steps[0])
	if err != nil {
		return nil, err
	}
	was, wanted := decode(e.Old), decode(e.New)
	switch {
	case reflect.DeepEqual(at.value, wanted):
		return nil, nil
	case !reflect.DeepEqual(at.value, was):
		return nil, fmt.Errorf("it was changed meanwhile: it was %s and is %s now", Text(e.Old), Text(marshal(at.value)))
	}
	operations := at.tests
	switch {
	case len(at.missing) > 0:
		pointer := at.pointer
		for i, s := range at.missing {
			pointer += "/" + escape(s.Member)
			if i == 0 {
				operations = append(operations, Operation{"test", pointer, json.RawMessage("null")})
			}
			value := json.RawMessage("{}")
			if i == len(at.missing)-1 {
				value = e.New
			}
			operations = append(operations, Operation{"add", pointer, value})
		}
	case wanted == nil:
		operations = append(operations, Operation{"test", at.pointer, e.Old}, Operation{"remove", at.pointer, nil})
	default:
		operations = append(operations, Operation{"test", at.pointer, e.Old}, Operation{"replace", at.pointer, e.New})
	}
	*object = set(*object, steps[0], wanted)
	return operations, nil
}

func decode(text json.RawMessage) (value any) {
	if len(text) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	decoder.Decode(&value) //nolint:errcheck // valid JSON
	return value
}

// set returns an object with another value at a path, which exists but for members.
func set(in any, steps []scan.Step, value any) any {
	if len(steps) == 0 {
		return value
	}
	s := steps[0]
	if array, ok := in.([]any); ok {
		at, _ := walk(in, steps[:1])
		index, _ := strconv.Atoi(at.pointer[1:])
		array[index] = set(array[index], steps[1:], value)
		return array
	}
	members, _ := in.(map[string]any)
	if members == nil {
		members = map[string]any{}
	}
	if members[s.Member] = set(members[s.Member], steps[1:], value); members[s.Member] == nil {
		delete(members, s.Member)
	}
	return members
}

// Text returns a value as it is written in a difference.
func Text(value json.RawMessage) string {
	if isNull(value) {
		return "nothing"
	}
	return string(value)
}
