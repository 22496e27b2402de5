// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
)

// A Form is the form of an answer.
type Form struct {
	wire.Form
	// PlainStatus is set if a Status, too, is written as plain JSON.
	PlainStatus bool
}

// Negotiate chooses the form of the answer to a read. typed is set if each object has
// apiVersion and kind; cbor reports whether the API server offers CBOR. ok is false if
// only the API server can answer, or if it would refuse the request.
func (rd *Read) Negotiate(r *http.Request, typed bool, cbor func() bool) (f Form, ok bool) {
	if rd.Fields != nil {
		f.Form = wire.Form{Fields: rd.Fields, File: rd.File, Changes: rd.Changes, Pretty: rd.Verb != Watch && rd.File == 0 && status.WantsPretty(r)}
		if rd.File == wire.XLSX {
			f.Sheet = wire.SheetOf{
				Resource:  schema.GroupVersionResource{Group: rd.Resource.Group, Version: rd.Resource.Version, Resource: rd.Resource.Name},
				Namespace: rd.Namespace,
			}
			if rd.Options.LabelSelector != nil {
				f.Sheet.Selector = rd.Options.LabelSelector.String()
			}
		}
		f.PlainStatus = true
		return f, true
	}
	offer := wire.Offer{Watch: rd.Verb == Watch, List: rd.Verb == List, Typed: typed, CBOR: cbor}
	if f.Form, ok = wire.Negotiate(r.Header.Get("Accept"), offer); !ok {
		return f, false
	}
	offer.Typed = true // a Status has apiVersion and kind
	plain, ok := wire.Negotiate(r.Header.Get("Accept"), offer)
	f.PlainStatus = ok && plain.Media == wire.JSON && plain.View == wire.Whole
	f.Pretty = rd.Verb != Watch && f.Media == wire.JSON && (f.Pretty || status.WantsPretty(r))
	if f.View != wire.Table {
		return f, true
	}
	switch f.Include = wire.Include(r.URL.Query().Get("includeObject")); f.Include {
	case "":
		f.Include = wire.IncludeMetadata
	case wire.IncludeMetadata, wire.IncludeObject, wire.IncludeNone:
	default:
		return f, false
	}
	return f, true
}
