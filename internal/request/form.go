// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"net/http"

	"github.com/watchkeeper/watchkeeper/internal/status"
	"github.com/watchkeeper/watchkeeper/internal/wire"
)

// A Form is the form of an answer.
type Form struct {
	wire.Form
	// PlainStatus is set when a Status, too, is to be answered in plain JSON.
	PlainStatus bool
}

// Negotiate chooses the form of the answer to a read. typed says that the objects
// have apiVersion and kind each, cbor whether the API server offers CBOR. It
// returns false where the API server has to be asked, or has an error for the
// request.
func (rd *Read) Negotiate(r *http.Request, typed bool, cbor func() bool) (f Form, ok bool) {
	if rd.Fields != nil {
		f.Form = wire.Form{Fields: rd.Fields, Pretty: rd.Verb != Watch && status.WantsPretty(r)}
		f.PlainStatus = true
		return f, true
	}
	offer := wire.Offer{Watch: rd.Verb == Watch, List: rd.Verb == List, Typed: typed, CBOR: cbor}
	if f.Form, ok = wire.Negotiate(r.Header.Get("Accept"), offer); !ok {
		return f, false
	}
	offer.Typed = true // as a Status is
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
