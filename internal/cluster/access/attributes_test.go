// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// TestSelectorsInAnyEncoding: a query that is read in a hurry narrows the question as one
// that is parsed.
func TestSelectorsInAnyEncoding(t *testing.T) {
	c := &Caller{}
	for query, like := range map[string]string{
		"resourceVersion=0":                  "",
		"resourceVersion=0&limit=500&x=%zz":  "",
		"%77atch=1":                          "watch=1",
		"w%61tch=true&resourceVersion=0":     "watch=1",
		"labelS%65lector=a%3Db":              "labelSelector=a=b",
		"fieldSele%63tor=metadata.name%3Dx":  "fieldSelector=metadata.name=x",
		"limit=1&labelSelector=a=b":          "labelSelector=a=b",
		"limit=1&resourceVersion=0&watch=1":  "watch=1",
		"limit=1;watch=1":                    "",
		"Watch=1&LabelSelector=a=b&swatch=1": "",
	} {
		of := func(query string) any {
			r := httptest.NewRequest("GET", "/api/v1/namespaces/default/pods", nil)
			r.URL.RawQuery = query
			a, err := AttributesOf(r, c.User)
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			if r.URL.RawQuery != query {
				t.Errorf("%s was changed", query)
			}
			return a
		}
		if got, want := of(query), of(like); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", query, got, want)
		}
	}
}

func BenchmarkAttributesOf(b *testing.B) {
	c := &Caller{}
	r := httptest.NewRequest("GET", "/api/v1/namespaces/default/pods?resourceVersion=0", nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AttributesOf(r, c.User); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTokenID(b *testing.B) {
	token := strings.Repeat("abcdefgh", 120)
	b.ReportAllocs()
	for b.Loop() {
		idOf(token)
	}
}
