// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// An Encoder writes the objects of one resource in any form.
type Encoder struct {
	// Resource is the resource of the objects.
	Resource kube.Resource
	// Cache holds the encodings. Required.
	Cache *Cache
	// DatePath returns the path of the date that a column of a custom resource
	// shows, by the current definition: nil for a column that shows no date. ok
	// is false when the definition is not known. It is called for each cell of
	// a column whose description has no path. nil knows no definition.
	DatePath func(column string) (path []string, ok bool)
	// Now is the clock of Tables; nil means time.Now.
	Now func() time.Time

	columns atomic.Pointer[columnSet] // those used last
}

// Object returns the body of a GET.
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

// object returns an object, not in a list, in a form that is not a Table.
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

// partialHead has the beginning of a PartialObjectMetadata, up to its metadata, by
// version.
var partialHead = map[string]string{
	"v1":      `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`,
	"v1beta1": `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":`,
}

// decodeStrict decodes JSON as the API server does. It returns ErrForm for a field
// that the type does not have, which would be lost, and for a string that is not UTF-8
// in the API server.
func decodeStrict(text string, v any) error {
	if replaced(text) {
		return fmt.Errorf("%w: %w", ErrForm, ErrReplaced)
	}
	unknown, err := kjson.UnmarshalStrict([]byte(text), v)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	return nil
}

// replaced reports whether JSON has a string whose bytes it does not tell: protobuf and
// CBOR carry strings that are not UTF-8, and encoding/json, which the API server uses,
// writes each byte that is not as the escape \ufffd. It writes the character U+FFFD
// itself without an escape.
func replaced(text string) bool {
	for {
		before, rest, found := strings.Cut(text, `\ufffd`)
		if !found {
			return false
		}
		if backslashes := len(before) - len(strings.TrimRight(before, `\`)); backslashes%2 == 0 {
			return true
		}
		text = rest
	}
}
