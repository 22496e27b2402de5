// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxFailureBody is more than a Status with the causes of an invalid object has.
const maxFailureBody = 16 << 10

// protobufMagic begins the API server's protobuf.
var protobufMagic = []byte("k8s\x00")

// A failure is the body of a failed response: a Status, of the gateway or passed
// through.
type failure struct {
	mediaType string // "" for a body that is not read
	body      []byte
	tooLong   bool
}

func (f *failure) begin(h http.Header) {
	if h.Get("Content-Encoding") == "" { // the API server compresses only long bodies
		f.mediaType, _, _ = mime.ParseMediaType(h.Get("Content-Type"))
	}
}

func (f *failure) write(p []byte) {
	switch {
	case f.mediaType == "" || f.tooLong:
	case len(f.body)+len(p) > maxFailureBody:
		f.body, f.tooLong = nil, true
	default:
		f.body = append(f.body, p...)
	}
}

// status returns the fields of the Status that kube-apiserver records, nil if the body
// was not a Status.
func (f *failure) status() *metav1.Status {
	var s metav1.Status
	switch f.mediaType {
	case runtime.ContentTypeJSON:
		if json.Unmarshal(f.body, &s) != nil {
			return nil
		}
	case runtime.ContentTypeProtobuf:
		raw, ok := bytes.CutPrefix(f.body, protobufMagic)
		var envelope runtime.Unknown
		if !ok || envelope.Unmarshal(raw) != nil || s.Unmarshal(envelope.Raw) != nil {
			return nil
		}
		s.TypeMeta = metav1.TypeMeta{Kind: envelope.Kind, APIVersion: envelope.APIVersion}
	}
	if s.Kind != "Status" || s.APIVersion != "v1" {
		return nil
	}
	return &s
}
