// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	const text = `{"a":{"b":"x","n":5,"f":1.5,"t":true,"null":null,"list":["y"],"o":{"c":"\u00e9"},"e":""},"b":"z"}`
	for path, want := range map[string]string{
		"a.b": "x", "a.n": "5", "a.f": "1.5", "a.t": "true", "a.null": "", "a.list": "", "a.o": "", "a.o.c": "é", "a.e": "",
		"b": "z", "b.c": "", "c": "", "a.list.0": "", "a.b.c": "",
	} {
		if got := Lookup(text, strings.Split(path, ".")...); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}
