// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchread

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Meta describes the object of a frame.
type Meta struct {
	// Kind and RV are those of the object; Namespace, Name and Annotations, in
	// a Table, those of the object in its row.
	Kind, Namespace, Name, RV string
	Annotations               map[string]string
	// Code is that of the Status in an ERROR.
	Code int
}

// EndsInitialEvents reports whether the object is that of the bookmark that
// ends the initial events (KEP-3157).
func (m *Meta) EndsInitialEvents() bool {
	return m.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// Meta decodes the object's metadata.
func (f *Frame) Meta() (Meta, error) {
	if len(f.Object) > 0 && f.Object[0] == '{' {
		return jsonMeta(f.Object)
	}
	return protobufMeta(f.Object)
}

type object struct {
	Kind     string
	Code     int
	Metadata struct {
		Namespace, Name, ResourceVersion string
		Annotations                      map[string]string
	}
	Rows []struct{ Object json.RawMessage }
}

func jsonMeta(text []byte) (Meta, error) {
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		return Meta{}, fmt.Errorf("%w in %q", err, text)
	}
	m := Meta{Kind: o.Kind, Code: o.Code, RV: o.Metadata.ResourceVersion}
	if o.Kind == "Table" && len(o.Rows) > 0 {
		var row object
		if err := json.Unmarshal(o.Rows[0].Object, &row); err != nil {
			return Meta{}, err
		}
		o.Metadata = row.Metadata
	}
	m.Namespace, m.Name, m.Annotations = o.Metadata.Namespace, o.Metadata.Name, o.Metadata.Annotations
	return m, nil
}

func protobufMeta(envelope []byte) (Meta, error) {
	u, err := Envelope(envelope)
	if err != nil {
		return Meta{}, err
	}
	if u.Kind == "Status" {
		var s metav1.Status
		err := s.Unmarshal(u.Raw)
		return Meta{Kind: u.Kind, Code: int(s.Code)}, err
	}
	// The metadata is member 1 of every kind.
	var o metav1.PartialObjectMetadata
	if err := o.Unmarshal(u.Raw); err != nil {
		return Meta{}, err
	}
	return Meta{Kind: u.Kind, Namespace: o.Namespace, Name: o.Name, RV: o.ResourceVersion, Annotations: o.Annotations}, nil
}

// Envelope opens an object in protobuf: "k8s", a zero byte, and a
// runtime.Unknown.
func Envelope(body []byte) (runtime.Unknown, error) {
	var u runtime.Unknown
	rest, ok := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !ok {
		return u, fmt.Errorf("no protobuf envelope: %.20q", body)
	}
	return u, u.Unmarshal(rest)
}
