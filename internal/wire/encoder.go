// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"sync/atomic"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// An Encoder writes the objects of one resource in any form.
type Encoder struct {
	// Resource is what it writes.
	Resource kube.Resource
	// Cache holds the encodings. Required.
	Cache *Cache
	// DatePath returns where a custom resource has the date that a column
	// shows, by its definition as of now: nil for a column that shows no date;
	// ok is false when that is not known. It is asked for every cell of a
	// column that does not tell itself. nil knows nothing.
	DatePath func(column string) (path []string, ok bool)
	// Now is the clock of Tables; nil means time.Now.
	Now func() time.Time

	columns atomic.Pointer[columnSet] // the last ones in use
}

// Object returns a single object as the answer to a GET.
func (e *Encoder) Object(f Form, o *scan.Object) (*Body, error) {
	b := &Body{}
	if f.View == Table {
		if err := e.listTable(b, f, ListHead{RV: o.RV, Columns: o.Columns}, []*scan.Object{o}); err != nil {
			return nil, err
		}
		return b.finish(f)
	}
	text, err := e.object(f, o)
	if err != nil {
		return nil, err
	}
	b.add(text...)
	if f.Media == JSON || f.Media == YAML {
		return b.finish(f)
	}
	return b, nil
}

// object returns an object by itself, in parts, in a form that is not a Table.
func (e *Encoder) object(f Form, o *scan.Object) ([]string, error) {
	switch {
	case f.Media == Protobuf:
		return e.objectProtobuf(f, o)
	case f.Media == CBOR:
		text, err := e.objectCBOR(f, o)
		return []string{selfDescribed, text}, err
	case f.View == Metadata:
		meta, err := e.metadataJSON(o)
		return []string{partialHead[f.Version], meta, "}"}, err
	}
	if f.Fields != nil {
		text, _ := e.projection(f.Fields, o)
		return []string{text}, nil
	}
	return []string{o.JSON}, nil
}

// partialHead is a PartialObjectMetadata up to its metadata, by version.
var partialHead = map[string]string{
	"v1":      `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`,
	"v1beta1": `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":`,
}

// decodeStrict decodes JSON as the API server does. What would be lost is
// ErrForm.
func decodeStrict(text string, v any) error {
	unknown, err := kjson.UnmarshalStrict([]byte(text), v)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	return nil
}
