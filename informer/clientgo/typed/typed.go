// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package typed has informers of Kubernetes' generated types, which are requested
// in protobuf and decoded when they are read, of types in a scheme, and of metadata, and a
// codec for unstructured objects.
//
//	pods := typed.New[*corev1.Pod](src, informer.Options{})
//	widgets := typed.NewMetadata(src, informer.Resource{Group: "example.com", Version: "v1", Name: "widgets"}, informer.Options{})
package typed

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/informer"
)

// An Object is a pointer to a generated type with protobuf, such as *corev1.Pod. A list, such
// as *corev1.PodList, is none, nor is a type of kubebuilder's: see [NewFromScheme].
type Object interface {
	runtime.Object
	metav1.Object
	Unmarshal([]byte) error
}

// New returns an informer of a type in client-go's scheme, in the API version of
// its Go package. It panics if the scheme does not have the type: use [NewFromScheme] for
// one of your own, or [informer.New] with [Protobuf].
func New[T Object](src *informer.Source, opts informer.Options) *informer.Informer[T] {
	if err := checkType[T](); err != nil {
		panic(err)
	}
	res, err := resource(newObject[T]())
	if err != nil {
		panic(err)
	}
	return informer.New(src, res, Protobuf[T](), opts)
}

// NewFromScheme returns an informer of a type in a scheme, such as one that kubebuilder has
// made. The mapper, such as that of a manager, knows the name of its resource: it may ask
// the API server, again if it does not find the kind in what it remembers. Objects are
// requested in JSON. NewFromScheme fails if the scheme does not have the type, the type is
// an interface or a list, or the API server does not have its resource.
func NewFromScheme[T runtime.Object](src *informer.Source, scheme *runtime.Scheme, mapper meta.RESTMapper, opts informer.Options) (*informer.Informer[T], error) {
	switch {
	case scheme == nil:
		return nil, errors.New("typed: scheme is nil")
	case mapper == nil:
		return nil, errors.New("typed: mapper is nil")
	}
	if err := checkType[T](); err != nil {
		return nil, err
	}
	kinds, _, err := scheme.ObjectKinds(newObject[T]())
	if err != nil {
		return nil, fmt.Errorf("typed: %w", err)
	}
	m, err := mapper.RESTMapping(kinds[0].GroupKind(), kinds[0].Version)
	if meta.IsNoMatchError(err) { // perhaps it has remembered what the API server had
		meta.MaybeResetRESTMapper(mapper)
		m, err = mapper.RESTMapping(kinds[0].GroupKind(), kinds[0].Version)
	}
	if err != nil {
		return nil, fmt.Errorf("typed: %w", err)
	}
	return informer.New(src, resourceOf(m.Resource), informer.JSON[T](), opts), nil
}

// NewMetadata returns an informer of the metadata of any resource's objects: nothing else of
// them is requested, or in memory.
func NewMetadata(src *informer.Source, res informer.Resource, opts informer.Options) *informer.Informer[*metav1.PartialObjectMetadata] {
	opts.MetadataOnly = true
	return informer.New(src, res, Protobuf[*metav1.PartialObjectMetadata](), opts)
}

// resource returns the resource of a type. For all types in the scheme, the name
// can be derived from the kind.
func resource(o runtime.Object) (informer.Resource, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return informer.Resource{}, fmt.Errorf("typed: %w", err)
	}
	r, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return resourceOf(r), nil
}

func resourceOf(r schema.GroupVersionResource) informer.Resource {
	return informer.Resource{Group: r.Group, Version: r.Version, Name: r.Resource}
}

// checkType returns why no informer can have objects of a type; nil if one can.
func checkType[T runtime.Object]() error {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return fmt.Errorf("typed: %s is not a pointer: name a concrete type, such as *corev1.Pod", t)
	}
	if _, err := meta.Accessor(newObject[T]()); err != nil { // a list has other metadata
		return fmt.Errorf("typed: %s is not the type of an object, such as *corev1.Pod: %w", t, err)
	}
	return nil
}

// newObject returns an empty object.
func newObject[T runtime.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// Protobuf returns the codec of a generated type that its API server serves in
// protobuf, as kube-apiserver does for all built-in types. It decodes JSON as well, see
// [informer.Options].JSON. As with client-go, the objects' kind and apiVersion are empty.
// Protobuf panics if T is an interface.
func Protobuf[T Object]() informer.Codec[T] {
	if err := checkType[T](); err != nil {
		panic(err)
	}
	return codec[T]{}
}

type codec[T Object] struct{}

func (codec[T]) Protobuf() bool { return true }

func (codec[T]) Decode(raw []byte) (T, error) {
	o := newObject[T]()
	if len(raw) == 0 || raw[0] != '{' { // which begins no message
		return o, o.Unmarshal(raw)
	}
	err := json.Unmarshal(raw, o)
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return o, err
}

// Unstructured returns the codec of any kind of object, in JSON.
func Unstructured() informer.Codec[*unstructured.Unstructured] { return unstructuredCodec{} }

type unstructuredCodec struct{}

func (unstructuredCodec) Protobuf() bool { return false }

func (unstructuredCodec) Decode(raw []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(raw)
}
