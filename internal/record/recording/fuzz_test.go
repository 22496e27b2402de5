// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// FuzzImport: for any lines in any order, an import ends without a panic, and with one
// of the documented errors, and takes little memory: the lines are at most 1 MiB.
func FuzzImport(f *testing.F) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // scripts/test sets a GOGC that no user has
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
		before := memory()
		_, _, err := Import(t.Context(), bytes.NewReader(e.EncodeAll(text, nil)), openStore(t), 1<<20)
		if more := memory() - before; more > maxFuzzMemory {
			t.Errorf("the import took %d MiB of memory", more>>20)
		}
		for _, want := range []error{nil, ErrNotRecording, ErrNewerFormat, ErrTooLarge, ErrDamaged} {
			if errors.Is(err, want) {
				return
			}
		}
		t.Error(err)
	})
}

// maxFuzzMemory bounds the memory that one import takes in addition to what the process
// has taken before. It includes an empty store and the garbage of a few imports.
const maxFuzzMemory = 128 << 20

// memory returns how much memory the process has taken from the system. It never
// decreases, so the difference includes the peak in between.
func memory() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.Sys)
}

// FuzzPseudonyms: valid JSON stays valid, with the same shape; invalid JSON does no
// harm.
func FuzzPseudonyms(f *testing.F) {
	f.Add(`{"a":"web-1 \n web-1-x","metadata":{"managedFields":[{"fieldsV1":{"f:data":{"f:web":{},"k:{\"name\":\"web\"}":{}}}}]},"kind":"web"}`)
	f.Add(`["\u0077eb","web\\","web.web-.web","{\"host\":\"web\"}"]`)
	f.Add(`{"kind":"Secret","data":{"n":"d2Vi"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		p := newPseudonyms()
		for _, name := range []string{"web", "web-1", "n", "u0", "a.b", "A:b_c@d"} {
			p.add(name)
		}
		got := p.text(text, "Secret")
		var before, after any
		if json.Unmarshal([]byte(text), &before) != nil {
			return
		}
		if err := json.Unmarshal([]byte(got), &after); err != nil || values(before) != values(after) {
			t.Errorf("%s\nbecame %s: %v", text, got, err)
		}
	})
}

// values counts the values in a value that are neither arrays nor objects, and
// the arrays.
func values(v any) (n int) {
	switch v := v.(type) {
	case []any:
		n++
		for _, e := range v {
			n += values(e)
		}
	case map[string]any:
		for _, e := range v {
			n += values(e)
		}
	default:
		n++
	}
	return n
}
