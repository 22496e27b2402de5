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
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
)

// A transformCodec applies a transform to what its codec decodes.
type transformCodec[T runtime.Object] struct {
	informer.Codec[T]
	transform cache.TransformFunc // nil for none; constant once the informer has started
	name      string              // of the type; "" if that is T
}

func (c *transformCodec[T]) Decode(raw []byte) (T, error) {
	o, err := c.Codec.Decode(raw)
	if err != nil || c.transform == nil {
		return o, err
	}
	var none T
	v, err := c.transform(o)
	if err != nil {
		return none, transformError{err}
	}
	out, ok := v.(T)
	if !ok {
		return none, transformError{fmt.Errorf("it returned a %T for a %T, and the informer keeps no other type", v, o)}
	}
	return out, nil
}

// A transformError is the failure of a transform.
type transformError struct{ error }

func (e transformError) Error() string { return "transform: " + e.error.Error() }
func (e transformError) Unwrap() error { return e.error }

// codecOf returns a codec for the type of example, which is a pointer to a
// struct.
func codecOf(example runtime.Object, protobuf bool) informer.Codec[runtime.Object] {
	c := exampleCodec{of: reflect.TypeOf(example).Elem()}
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

// An exampleCodec decodes to a type that is known only at run time.
type exampleCodec struct {
	of       reflect.Type
	kind     schema.GroupVersionKind // empty, as with client-go, except for metadata
	protobuf bool
}

func (c exampleCodec) Protobuf() bool { return c.protobuf }

func (c exampleCodec) Decode(raw []byte) (o runtime.Object, err error) {
	o, ok := reflect.New(c.of).Interface().(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not a runtime.Object", c.of)
	}
	if t, ok := o.(typed.Object); ok && c.protobuf && (len(raw) == 0 || raw[0] != '{') { // which begins no message
		err = t.Unmarshal(raw)
	} else {
		err = json.Unmarshal(raw, o)
	}
	o.GetObjectKind().SetGroupVersionKind(c.kind)
	return o, err
}
