// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/base64"
	"testing"
)

func TestContinueTokens(t *testing.T) {
	token := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, test := range []struct {
		token, namespace string
		want             Page
		ok               bool
	}{
		{EncodeContinue(232, "cm2", ""), "", Page{232, "cm2\x00"}, true},
		{EncodeContinue(232, "ns/cm2", "ns"), "ns", Page{232, "ns/cm2\x00"}, true},
		{EncodeUncachedContinue(232, "ns/cm2", "ns"), "ns", Page{232, "ns/cm2\x00"}, true},
		{token(`{"v":"meta.k8s.io/v1","rv":232,"start":"/cm2\u0000"}`), "ns", Page{232, "ns/cm2\x00"}, true},
		{token(`{"v":"meta.k8s.io/v1","rv":232,"start":"ns/cm2\u0000"}`), "", Page{232, "ns/cm2\x00"}, true},
		{token(`{"v":"meta.k8s.io/v1","rv":-1,"start":"cm2\u0000"}`), "", Page{}, false},
		{token(`{"v":"meta.k8s.io/v1","rv":0,"start":"cm2\u0000"}`), "", Page{}, false},
		{token(`{"v":"meta.k8s.io/v1","rv":5,"start":"../x\u0000"}`), "ns", Page{}, false},
		{token(`{"v":"meta.k8s.io/v1","rv":5,"start":""}`), "", Page{}, false},
		{token(`{"v":"v2","rv":5,"start":"x"}`), "", Page{}, false},
		{token(`{`), "", Page{}, false},
		{"!", "", Page{}, false},
	} {
		got, err := DecodeContinue(test.token, test.namespace)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("%s in %q: %+v, %v", test.token, test.namespace, got, err)
		}
	}
}
