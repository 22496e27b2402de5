// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/watchkeeper/watchkeeper/informer"
)

type (
	everything struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Name              string                 `json:"name"`
		Upper             string                 `json:"NAME"`
		Untagged          int                    // its name has an upper-case letter
		Skipped           string                 `json:"-"`
		Dash              string                 `json:"-,"`
		Quoted            int                    `json:"count,string"`
		Bad               string                 `json:"bad'tag"`
		Ptr               **everything           `json:"next"`
		Slice             []everything           `json:"items"`
		Array             [2]one                 `json:"array"`
		Map               map[string]*everything `json:"labels"`
		Maps              []map[string][]one     `json:"maps"`
		Raw               json.RawMessage        `json:"raw"`
		Own               quantityLike           `json:"own"`
		Text              textual                `json:"text"`
		Kelvin            string                 `json:"kind\u017f"`
		one
		*Two
		Three
		Alias
	}
	one struct {
		Name  string `json:"name"`
		Both  int
		First string `json:"first"`
	}
	Two struct {
		Both   int
		First  string `json:"First"`
		Second string `json:"second"`
		*Three
	}
	Three struct {
		Third string `json:"third"`
		Name  int    `json:"nAme"`
		*everything
	}
	Alias        []one
	quantityLike struct{ Value string }
	textual      string
)

func (q *quantityLike) UnmarshalJSON(text []byte) error {
	q.Value = string(text)
	return nil
}

func (s *textual) UnmarshalText(text []byte) error {
	*s = textual(text)
	return nil
}

// A writer writes random documents, with names that differ in case, and of any type.
type writer struct {
	*rand.Rand
	names []string
}

func (w writer) name() string {
	name := w.names[w.IntN(len(w.names))]
	switch w.IntN(8) {
	case 0:
		return strings.ToUpper(name)
	case 1:
		return strings.ToLower(name)
	case 2:
		return strings.ToUpper(name[:1]) + name[1:]
	case 3:
		return strings.ReplaceAll(strings.ReplaceAll(name, "s", "\u017f"), "k", "\u212a")
	case 4: // an escape for the first letter
		return `\u` + strconv.FormatUint(0x10000|uint64(name[0]), 16)[1:] + name[1:]
	case 5:
		return name + "\xff"[:w.IntN(2)]
	}
	return name
}

func (w writer) value(depth int) string {
	n := w.IntN(10)
	if depth == 0 {
		n = w.IntN(5)
	}
	switch n {
	case 0:
		return "null"
	case 1:
		return strconv.Itoa(w.IntN(100))
	case 2:
		return `"` + strconv.Itoa(w.IntN(100)) + `"`
	case 3:
		return `"` + w.name() + `"`
	case 4:
		return "true"
	case 5, 6:
		var all []string
		for range w.IntN(3) {
			all = append(all, w.value(depth-1))
		}
		return "[" + strings.Join(all, " , ") + "]"
	}
	var all []string
	for range w.IntN(8) {
		all = append(all, ` "`+w.name()+`" :`+w.value(depth-1))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// namesOf collects the names of the fields of a type, and of what it consists of.
func namesOf(t reflect.Type, seen map[reflect.Type]bool, names map[string]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		namesOf(t.Elem(), seen, names)
	case reflect.Struct:
		for n := range t.NumField() {
			f := t.Field(n)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			for _, name := range []string{f.Name, tag} {
				if name != "" && !strings.ContainsAny(name, `'"\`) {
					names[name] = true
				}
			}
			namesOf(f.Type, seen, names)
		}
	}
}

// TestJSON: the codec of package informer decodes as Kubernetes does (sigs.k8s.io/json): names
// match exactly, and of several that are equal the last one counts.
func TestJSON(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := writer{Rand: rand.New(rand.NewPCG(seed, 0))}
	sameJSON[everything](t, w)
	sameJSON[*everything](t, w)
	sameJSON[map[string]everything](t, w)
	sameJSON[[]*one](t, w)
	sameJSON[corev1.Pod](t, w)
	sameJSON[metav1.PartialObjectMetadata](t, w)
	sameJSON[map[string]string](t, w)
	sameJSON[json.RawMessage](t, w)
}

// sameJSON compares the two decoders with random documents.
func sameJSON[T any](t *testing.T, w writer) {
	t.Helper()
	names := map[string]bool{"other": true}
	namesOf(reflect.TypeFor[T](), map[reflect.Type]bool{}, names)
	for name := range names {
		w.names = append(w.names, name)
	}
	slices.Sort(w.names)
	codec, decoded := informer.JSON[T](), 0
	for range 3000 {
		text := w.value(5)
		if w.IntN(50) == 0 {
			text = text[:w.IntN(len(text))]
		}
		got, err := codec.Decode([]byte(text))
		var want T
		if failed := kubejson.Unmarshal([]byte(text), &want); (err == nil) != (failed == nil) || !reflect.DeepEqual(got, want) {
			t.Fatalf("%T of %s: %+v, %v, want %+v, %v", want, text, got, err, want, failed)
		}
		if err == nil && text[0] == '{' {
			decoded++
		}
	}
	t.Logf("%T: %d objects decoded", *new(T), decoded)
}
