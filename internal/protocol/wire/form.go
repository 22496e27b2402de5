// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"strings"

	"github.com/munnerz/goautoneg"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// ErrForm marks an object that cannot be written exactly in the requested form.
var ErrForm = errors.New("cannot be written in this form")

// ErrReplaced marks, with ErrForm, an object with a string that is not UTF-8, of which
// the gateway has only what JSON can carry.
var ErrReplaced = errors.New("a string is not UTF-8")

// A Media is the media type of an answer.
type Media uint8

// The media types of the API server.
const (
	JSON Media = iota
	YAML
	Protobuf
	CBOR
	mediaCount
)

var mediaTypes = [mediaCount]struct{ typ, sub, watch string }{
	JSON:     {"application", "json", "application/json"},
	YAML:     {"application", "yaml", ""},
	Protobuf: {"application", "vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf;stream=watch"},
	CBOR:     {"application", "cbor", "application/cbor-seq"},
}

// A View is what an answer shows of the objects.
type View uint8

// The views.
const (
	Whole    View = iota
	Metadata      // as=PartialObjectMetadata, as=PartialObjectMetadataList
	Table         // as=Table
)

// An Include is a value of the includeObject parameter: what a row of a Table has
// of its object.
type Include string

// The values of includeObject; "" means IncludeMetadata.
const (
	IncludeMetadata Include = "Metadata"
	IncludeObject   Include = "Object"
	IncludeNone     Include = "None"
)

// A Form is how an answer is written. The zero value is plain JSON.
type Form struct {
	Media Media
	View  View
	// Version is the version of meta.k8s.io, v1 or v1beta1, for Metadata and Table.
	Version string
	// Include is for Tables.
	Include Include
	// Pretty indents JSON.
	Pretty bool
	// Fields is a projection of whole objects in JSON; nil shows all fields.
	Fields *scan.Paths
	// Changes writes the rows of a list as what differs from the row before, see
	// [scan.RowChanges]; Fields has to have columns.
	Changes bool
	// File writes a list as a file. The columns are those of Fields.
	File File
	// Sheet is what an XLSX file says about its objects.
	Sheet SheetOf
}

// A File is how a list is written as a file; zero is not at all.
type File uint8

// The files.
const (
	CSV File = iota + 1
	XLSX
)

// XLSXType is the media type of .xlsx files.
const XLSXType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// A SheetOf is the list that a tab of a workbook has.
type SheetOf struct {
	Resource            schema.GroupVersionResource
	Namespace, Selector string
}

// equal reports whether two forms are equal, with equal fields.
func (f Form) equal(other Form) bool {
	a, b := f.Fields, other.Fields
	f.Fields, other.Fields = nil, nil
	return f == other && (a == b || a != nil && b != nil && a.Key() == b.Key())
}

// ContentType returns the Content-Type of an answer.
func (f Form) ContentType(watch bool) string {
	switch f.File {
	case CSV:
		return "text/csv; charset=utf-8; header=present" // RFC 4180
	case XLSX:
		return XLSXType
	}
	m := mediaTypes[f.Media]
	if watch {
		return m.watch
	}
	return m.typ + "/" + m.sub
}

// An Offer is what Negotiate chooses from.
type Offer struct {
	// Watch and List are the verb; neither means GET.
	Watch, List bool
	// Typed is set for the API server's own types. Custom resources have
	// protobuf of their metadata only.
	Typed bool
	// CBOR reports whether the API server offers CBOR (its feature gate
	// CBORServingAndStorage). It is called only for a client that accepts it.
	CBOR func() bool
}

// Negotiate chooses the form of an answer from an Accept header, by the rules
// of the API server (docs/kubernetes-watch.md, "Negotiation and wire format").
// ok is false if the API server would refuse the header, or if the gateway does
// not implement what it asks for.
func Negotiate(accept string, o Offer) (f Form, ok bool) {
	if accept == "" {
		return Form{}, true
	}
	if o.Typed && !o.routed(accept) {
		return Form{}, false
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for media := range mediaCount {
			m := mediaTypes[media]
			if !(clause.Type == m.typ && (clause.SubType == m.sub || clause.SubType == "*") ||
				clause.Type == "*" && clause.SubType == "*") {
				continue
			}
			if f, ok := o.accept(media, clause.Params); ok {
				return f, o.exists(f)
			}
		}
	}
	return Form{}, false
}

// routed reports whether the API server's router (go-restful) passes a request on.
// Requests for its own types go through the router, which knows */* but no other
// wildcard.
func (o Offer) routed(accept string) bool {
	for clause := range strings.SplitSeq(accept, ",") {
		name, _, _ := strings.Cut(clause, ";")
		typ, sub, _ := strings.Cut(strings.Trim(name, " "), "/")
		if typ == "*" && sub == "*" {
			return true
		}
		for media := range mediaCount {
			if m := mediaTypes[media]; typ == m.typ && sub == m.sub && (media != CBOR || o.CBOR()) {
				return true
			}
		}
	}
	return false
}

// accept reads the parameters of a clause. The API server skips a clause for which
// it returns false.
func (o Offer) accept(media Media, params map[string]string) (Form, bool) {
	f := Form{Media: media, Pretty: params["pretty"] == "1"}
	stream, sv := params["stream"], params["sv"]
	if stream != "" && (stream != "watch" || media == YAML) || sv != "" && sv != "v1" {
		return Form{}, false
	}
	kind, hasKind := params["as"]
	group, hasGroup := params["g"]
	version, hasVersion := params["v"]
	if !hasKind && !hasGroup && !hasVersion {
		return f, (media != Protobuf || o.Typed) && (media != CBOR || o.CBOR())
	}
	if group != "meta.k8s.io" || version != "v1" && version != "v1beta1" {
		return Form{}, false
	}
	f.Version = version
	switch kind {
	case "Table":
		f.View = Table
		return f, media == JSON || media == YAML
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		f.View = Metadata
		if (kind == "PartialObjectMetadataList") != (o.List && !o.Watch) {
			f.Version = "" // chosen, then refused: see exists
		}
		return f, media != CBOR || o.CBOR()
	}
	return Form{}, false
}

// exists reports whether the verb has an answer in the form. If not, the API server
// refuses the request and does not try the next clause.
func (o Offer) exists(f Form) bool {
	return (f.View == Whole || f.Version != "") && !(o.Watch && f.Media == YAML)
}
