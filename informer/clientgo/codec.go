// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/typed"
)

// transforming is a codec with a transform behind it.
type transforming[T runtime.Object] struct {
	informer.Codec[T]
	transform cache.TransformFunc // nil for none; does not change once the informer has started
	name      string              // of the type, if T does not tell
}

func (c *transforming[T]) Decode(raw []byte) (T, error) {
	o, err := c.Codec.Decode(raw)
	if err != nil || c.transform == nil {
		return o, err
	}
	var none T
	v, err := c.transform(o)
	if err != nil {
		return none, fmt.Errorf("transform: %w", err)
	}
	out, ok := v.(T)
	if !ok {
		return none, fmt.Errorf("transform: it makes a %T of a %T", v, o)
	}
	return out, nil
}

// codecLike returns the codec of objects of the type of example, a pointer to a
// struct.
func codecLike(example runtime.Object, protobuf bool) informer.Codec[runtime.Object] {
	c := likeCodec{of: reflect.TypeOf(example).Elem()}
	switch example.(type) {
	case runtime.Unstructured:
		return unstructuredCodec{}
	case *metav1.PartialObjectMetadata:
		c.kind = example.GetObjectKind().GroupVersionKind()
	}
	if _, ok := example.(typed.Object); ok {
		c.protobuf = protobuf
	}
	return c
}

type unstructuredCodec struct{}

func (unstructuredCodec) Protobuf() bool { return false }

func (unstructuredCodec) Decode(raw []byte) (runtime.Object, error) {
	return typed.Unstructured().Decode(raw)
}

type likeCodec struct {
	of       reflect.Type
	kind     schema.GroupVersionKind // none, as with client-go, but for metadata
	protobuf bool
}

func (c likeCodec) Protobuf() bool { return c.protobuf }

func (c likeCodec) Decode(raw []byte) (o runtime.Object, err error) {
	o, ok := reflect.New(c.of).Interface().(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not a runtime.Object", c.of)
	}
	if t, ok := o.(typed.Object); ok && c.protobuf {
		err = t.Unmarshal(raw)
	} else {
		err = json.Unmarshal(raw, o)
	}
	o.GetObjectKind().SetGroupVersionKind(c.kind)
	return o, err
}
