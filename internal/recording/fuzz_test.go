// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// FuzzImport: whatever lines come in whatever order, an import ends without a
// panic, with one of the errors that are promised.
func FuzzImport(f *testing.F) {
	s := openStore(f)
	fill(f, s)
	d, err := zstd.NewReader(nil)
	if err != nil {
		f.Fatal(err)
	}
	text, err := d.DecodeAll(export(f, s, everything()), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"recording":{"format":1}}` + "\n" + `{"stream":{"version":"v1","resource":"pods","rv":1}}` + "\n" + `{"form":{"json":{}}}` + "\n" + `{"gap":{"from":{"rv":9},"to":{"rv":3}}}` + "\n"))
	e, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _, err := Import(t.Context(), bytes.NewReader(e.EncodeAll(text, nil)), openStore(t), 1<<20)
		for _, want := range []error{nil, ErrNotRecording, ErrNewerFormat, ErrTooLarge, ErrDamaged} {
			if errors.Is(err, want) {
				return
			}
		}
		t.Error(err)
	})
}

// FuzzPseudonyms: a text of JSON stays one, with as many strings.
func FuzzPseudonyms(f *testing.F) {
	f.Add(`{"a":"web-1 \n web-1-x","k:{\"name\":\"web\"}":{"kind":"web"}}`)
	f.Add(`["\u0077eb","web\\","web.web-.web"]`)
	f.Fuzz(func(t *testing.T, text string) {
		p := newPseudonyms()
		for _, name := range []string{"web", "web-1", "n", "u0", "a.b"} {
			p.add(name)
		}
		if got := p.text(text); bytes.Count([]byte(got), []byte(`"`)) != bytes.Count([]byte(text), []byte(`"`)) {
			t.Errorf("%s\nbecame %s", text, got)
		}
	})
}
