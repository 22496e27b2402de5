// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package selfreview

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

// mediaTypes are the API server's encodings: JSON, YAML, protobuf and CBOR.
var mediaTypes = serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo)).SupportedMediaTypes()

// isYAML reports whether the body of a request is YAML.
func isYAML(r *http.Request) bool {
	name, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return name == runtime.ContentTypeYAML
}

// An object is a pointer to an API type.
type object[T any] interface {
	*T
	runtime.Object
}

// decode decodes the body of a request, as the API server does: a body without a
// Content-Type is JSON, and one without a kind has that of the path.
func decode[T any, P object[T]](r *http.Request, body []byte) (P, error) {
	contentType := r.Header.Get("Content-Type")
	if contentType == "" {
		contentType = runtime.ContentTypeJSON
	}
	return decodeAs[T, P](contentType, body)
}

func decodeAs[T any, P object[T]](contentType string, body []byte) (P, error) {
	name, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("the content type %q is not understood: %w", contentType, err)
	}
	info, ok := runtime.SerializerInfoForMediaType(mediaTypes, name)
	if !ok {
		return nil, fmt.Errorf("the content type %q is not understood", contentType)
	}
	want, err := kindOf(P(new(T)))
	if err != nil {
		return nil, err
	}
	decoded, got, err := info.Serializer.Decode(body, &want, nil)
	if err != nil {
		return nil, err
	}
	review, ok := decoded.(P)
	if !ok {
		return nil, fmt.Errorf("the body is a %s, and the path is for a %s", got, want)
	}
	return review, nil
}

// kindOf returns the kind of an object, which each of its encodings names.
func kindOf(o runtime.Object) (schema.GroupVersionKind, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return kinds[0], nil
}

// write answers a create with an object, in the encoding that the request accepts.
func write(w http.ResponseWriter, r *http.Request, o runtime.Object) {
	form, ok := wire.Negotiate(r.Header.Get("Accept"), wire.Offer{Typed: true, CBOR: func() bool { return true }})
	if !ok || form.View != wire.Whole {
		status.Write(w, r, status.New(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor"))
		return
	}
	body, err := encode(o, form.ContentType(false), form.Pretty || status.WantsPretty(r))
	if err != nil {
		status.Write(w, r, status.Internal(err.Error()))
		return
	}
	h := w.Header()
	h.Set("Content-Type", form.ContentType(false))
	h.Set("Cache-Control", "no-cache, private")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusCreated)
	w.Write(body) //nolint:errcheck // the client is gone
}

func encode(o runtime.Object, mediaType string, pretty bool) ([]byte, error) {
	info, ok := runtime.SerializerInfoForMediaType(mediaTypes, mediaType)
	if !ok {
		return nil, fmt.Errorf("no encoder for %s", mediaType)
	}
	kind, err := kindOf(o)
	if err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(kind)
	encoder := runtime.Encoder(info.Serializer)
	if pretty && info.PrettySerializer != nil {
		encoder = info.PrettySerializer
	}
	var b bytes.Buffer
	err = encoder.Encode(o, &b)
	return b.Bytes(), err
}
