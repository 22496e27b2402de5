// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// selfDescribed is the tag that CBOR data begins with (RFC 8949, 3.4.6).
const selfDescribed = "\xd9\xd9\xf7"

// raw is encoded CBOR.
type raw string

func (r raw) MarshalCBOR() ([]byte, error) { return []byte(r), nil }

// objectCBOR encodes an object, without the tag.
func (e *Encoder) objectCBOR(f Form, o *scan.Object) (string, error) {
	if f.View == Metadata {
		as := asMetadataCBOR
		if f.Version == "v1beta1" {
			as = asMetadataCBORBeta1
		}
		return e.Cache.get(o, as, func(o *scan.Object) (string, error) {
			meta, err := e.metadata(o)
			if err != nil {
				return "", err
			}
			return encodeCBOR(metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/" + f.Version},
				ObjectMeta: *meta,
			})
		})
	}
	return e.Cache.get(o, asCBOR, func(o *scan.Object) (string, error) { return wholeCBOR(o, false) })
}

// wholeCBOR encodes a whole object. As an item of a list, an object of the API
// server's own types has no kind and apiVersion.
func wholeCBOR(o *scan.Object, item bool) (string, error) {
	if !o.Typed() {
		if replaced(o.JSON) {
			return "", fmt.Errorf("%w: %w", ErrForm, ErrReplaced)
		}
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON([]byte(o.JSON)); err != nil {
			return "", fmt.Errorf("%w: %w", ErrForm, err)
		}
		return encodeCBOR(u.Object)
	}
	typed, err := decodeTyped(o)
	if err != nil {
		return "", err
	}
	if item {
		typed.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return encodeCBOR(typed)
}

func (e *Encoder) listCBOR(f Form, h ListHead, items []*scan.Object) (*Body, error) {
	list := struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Metadata   any    `json:"metadata"`
		Items      []raw  `json:"items"`
	}{h.Kind, h.APIVersion, h.meta(), make([]raw, 0, len(items))}
	if f.View == Metadata {
		list.Kind, list.APIVersion = "PartialObjectMetadataList", "meta.k8s.io/"+f.Version
	} else if !h.Typed {
		list.Metadata = h.untypedMeta()
	}
	var encoded Body
	err := encodeAll(&encoded, items, func(b *Body, _ int, run []*scan.Object) error {
		for _, o := range run {
			var text string
			var err error
			if f.View == Metadata {
				text, err = e.objectCBOR(f, o)
			} else {
				text, err = e.Cache.get(o, asCBORItem, func(o *scan.Object) (string, error) { return wholeCBOR(o, true) })
			}
			if err != nil {
				return err
			}
			b.add(text)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, text := range encoded.parts {
		list.Items = append(list.Items, raw(text))
	}
	if f.View == Metadata && len(items) == 0 {
		list.Items = nil
	}
	text, err := encodeCBOR(list)
	return &Body{[]string{selfDescribed, text}}, err
}

func frameCBOR(typ kube.EventType, object string) (string, error) {
	return encodeCBOR(struct {
		Type   string `json:"type"`
		Object raw    `json:"object"`
	}{string(typ), raw(object)})
}

func encodeCBOR(v any) (string, error) {
	b, err := direct.Marshal(v)
	return string(b), err
}
