// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"
	"testing"
	"time"
)

// TestOwners finds the owners, up to what is none.
func TestOwners(t *testing.T) {
	node := Owner{Kind: "Node", Name: "n"}
	owner := Owner{"apps/v1", "ReplicaSet", `a"b`, "u", true}
	const text = `{"kind":"ReplicaSet","name":"a\"b","uid":"u","apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true}`
	for metadata, want := range map[string][]Owner{
		``:                         nil,
		`"ownerReferences":null`:   nil,
		`"ownerReferences":[]`:     nil,
		`"ownerReferences":[null]`: nil,
		`"ownerReferences":[{"kind":"Node","name":"n"}]`:                                       {node},
		`"ownerReferences":[{"kind":"Node","name":"n","controller":false},{"kind":1}]`:         {node},
		`"ownerReferences":[{"kind":1,"controller":true}]`:                                     nil,
		`"ownerReferences":[{"kind":"Node","controller":tru`:                                   nil,
		`"ownerReferences":[` + text + `]`:                                                     {owner},
		`"name":"x","ownerReferences": [ {"kind":"Node","name":"n"} , ` + text + `],"uid":"y"`: {node, owner},
	} {
		if got := slices.Collect(ItemOwners([]byte(`{"metadata":{` + metadata + `}}`))); !slices.Equal(got, want) {
			t.Errorf("%s: %+v", metadata, got)
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

func TestDeletion(t *testing.T) {
	for text, want := range map[string]time.Time{
		`{"metadata":{"deletionTimestamp":"2026-01-31T15:04:05Z"}}`: time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC),
		`{"metadata":{"deletionTimestamp":null}}`:                   {},
		`{"metadata":{"deletionTimestamp":"soon"}}`:                 {},
		`{"metadata":{}}`: {},
		`{"metadata":`:    {},
	} {
		if got := ItemDeletion([]byte(text)); !got.Equal(want) {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestFinalizers(t *testing.T) {
	for text, want := range map[string][]string{
		`{"metadata":{"finalizers":["a/b", "c\"d"]}}`: {"a/b", "c\"d"},
		`{"metadata":{"finalizers":[]}}`:              nil,
		`{"metadata":{"finalizers":null}}`:            nil,
		`{"metadata":{"finalizers":[1]}}`:             nil,
		`{"metadata":{}}`:                             nil,
		`{"metadata":{"finalizers":["a"`:              {"a"},
	} {
		if got := ItemFinalizers([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestAnnotation(t *testing.T) {
	object := []byte(`{"metadata":{"labels":{"a":"1"},"annotations":{"b":"2\n"}}}`)
	if v, ok := ItemAnnotation(object, "b"); v != "2\n" || !ok {
		t.Errorf("%q %v", v, ok)
	}
	if v, ok := ItemAnnotation(object, "a"); ok {
		t.Errorf("%q", v)
	}
}
