// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

// TestExactOrRefused: whatever the API server holds in its own object types, an
// encoding made from its JSON has the same bytes as the API server's, or is refused. Only
// what means the same may differ: a list of bytes that is empty or absent, and the
// escapes of JSON inside of JSON (managedFields, RawExtension).
func TestExactOrRefused(t *testing.T) {
	serializers := map[Media]runtime.Encoder{
		Protobuf: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
		CBOR:     cbor.NewSerializer(scheme.Scheme, scheme.Scheme),
	}
	seed := rand.Int64()
	t.Log("seed", seed)
	exact, refused := 0, 0
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if _, ok := reflect.New(typ).Interface().(metav1.Object); !ok {
			continue
		}
		filler := hostileFiller(seed)
		for range 20 {
			o := reflect.New(typ).Interface().(runtime.Object)
			filler.Fill(o)
			o.GetObjectKind().SetGroupVersionKind(gvk)
			text := marshal(o)
			for media, serializer := range serializers {
				body, err := newEncoder().Object(Form{Media: media}, parse(t, text))
				switch want := encoded(t, serializer, o); {
				case errors.Is(err, ErrReplaced):
					refused++
				case err != nil:
					t.Errorf("%s: %v", gvk, err)
				case body.String() != want:
					t.Errorf("%s, %v: %q, want %q, of %s", gvk, media, body, want, text)
				default:
					exact++
				}
			}
		}
	}
	if t.Logf("%d exact, %d refused", exact, refused); exact < refused || refused == 0 {
		t.Error("the objects are not what this test is about")
	}
	custom := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"5"},"spec":"\ufffd"}`
	if _, err := newEncoder().Object(Form{Media: CBOR}, parse(t, custom)); !errors.Is(err, ErrReplaced) {
		t.Errorf("a custom resource in CBOR: %v", err)
	}
}

// hostileFiller fills objects with strings that encodings write differently, one in a
// hundred of them not in UTF-8.
func hostileFiller(seed int64) *randfill.Filler {
	strings := []string{"", "a", "<&>", "é\u2028", "\ufffd", `\ufffd`, `\\ufffd`, "\x00", "😀"}
	return randfill.NewWithSeed(seed).NilChance(.5).NumElements(0, 2).MaxDepth(12).Funcs(
		func(s *string, c randfill.Continue) {
			if *s = strings[c.Intn(len(strings))]; c.Intn(100) == 0 {
				*s += "\xff\xfe\xc3("
			}
		},
		func(b *[]byte, c randfill.Continue) {
			if *b = nil; c.Bool() {
				*b = []byte("\xff<")
			}
		},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			m.Name, m.ResourceVersion = "a", "5"
		},
		func(v *metav1.Time, c randfill.Continue) { *v = metav1.Unix(c.Int63n(1<<31), 0) },
		func(v *metav1.MicroTime, c randfill.Continue) {
			*v = metav1.NewMicroTime(time.UnixMicro(c.Int63n(1 << 51)))
		},
		func(v *resource.Quantity, c randfill.Continue) {
			*v = resource.MustParse([]string{"0", "1", "1500m", "1Gi", "1e3"}[c.Intn(5)])
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31()); c.Bool() {
				*v = intstr.FromString("a")
			}
		},
		func(v *metav1.FieldsV1, c randfill.Continue) { v.SetRawString(`{"f:a":{}}`) },
		func(v *runtime.RawExtension, c randfill.Continue) { v.Raw = []byte(`{"a":"b"}`) },
	)
}
