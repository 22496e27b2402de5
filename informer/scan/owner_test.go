// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import "testing"

// TestController finds the owner that is the controller, and only that.
func TestController(t *testing.T) {
	owner := Owner{"apps/v1", "ReplicaSet", "a\"b", "u"}
	const text = `{"kind":"ReplicaSet","name":"a\"b","uid":"u","apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true}`
	for metadata, want := range map[string]Owner{
		``:                         {},
		`"ownerReferences":null`:   {},
		`"ownerReferences":[]`:     {},
		`"ownerReferences":[null]`: {},
		`"ownerReferences":[{"kind":"Node","name":"n"}]`:                                       {},
		`"ownerReferences":[{"kind":"Node","name":"n","controller":false}]`:                    {},
		`"ownerReferences":[{"kind":1,"controller":true}]`:                                     {},
		`"ownerReferences":[{"kind":"Node","controller":tru`:                                   {},
		`"ownerReferences":[` + text + `]`:                                                     owner,
		`"name":"x","ownerReferences": [ {"kind":"Node","name":"n"} , ` + text + `],"uid":"y"`: owner,
	} {
		if got, ok := ItemController([]byte(`{"metadata":{` + metadata + `}}`)); got != want || ok != (want != Owner{}) {
			t.Errorf("%s: %+v %v", metadata, got, ok)
		}
	}
}

func TestGeneration(t *testing.T) {
	for text, want := range map[string]int64{
		`{"metadata":{"generation":9007199254740993}}`: 9007199254740993,
		`{"metadata":{}}`:                    0,
		`{"metadata":{"generation":null}}`:   0,
		`{"metadata":{"generation":"none"}}`: 0,
		`{`:                                  0,
	} {
		if got := ItemGeneration([]byte(text)); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
}
