// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package difference shows tests how two values differ.
package difference

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Of shows two values that are not equal, as JSON; it returns "" if they are. An
// empty slice or map equals nil.
func Of[T any](want, got T) string {
	a, b := reflect.ValueOf(want), reflect.ValueOf(got)
	hasLen := a.Kind() == reflect.Slice || a.Kind() == reflect.Map
	if reflect.DeepEqual(want, got) || hasLen && a.Len() == 0 && b.Len() == 0 {
		return ""
	}
	w, errWant := json.MarshalIndent(want, "", " ")
	g, errGot := json.MarshalIndent(got, "", " ")
	if errWant != nil || errGot != nil {
		return fmt.Sprintf("want %+v\ngot  %+v", want, got)
	}
	return fmt.Sprintf("want %s\ngot %s", w, g)
}
