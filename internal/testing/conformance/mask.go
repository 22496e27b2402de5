// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// A framedMask makes the mask for a Content-Type.
type framedMask func(contentType string) compare.Mask

// masks are the parts of answers that may differ, by their names in rule files.
var masks = map[string]framedMask{
	"list-rv":         always(compare.ListRV),
	"current-rv":      always(compare.CurrentRV),
	"bookmark-rv":     compare.Bookmarks,
	"later-bookmarks": withoutLaterBookmarks,
	"ages":            always(withoutAges),
	"printed":         always(printed),
	"gzip":            always(unzipped),
	"identity":        always(withoutIdentity),
	"digits":          always(withoutDigits),
	"body":            always(nothing),
}

func always(m compare.Mask) framedMask { return func(string) compare.Mask { return m } }

// withoutLaterBookmarks removes all bookmarks of a watch except the end bookmark,
// whose RV it blanks. Whether a short watch has another bookmark depends on the
// server's clock.
func withoutLaterBookmarks(contentType string) compare.Mask {
	return func(body []byte) []byte {
		frames, err := compare.Frames(contentType, body)
		if err != nil {
			return body
		}
		var out []byte
		for _, f := range frames {
			if f.Type != "BOOKMARK" || f.EndsInitial() {
				out = append(out, f.Raw...)
			}
		}
		return compare.Bookmarks(contentType)(out)
	}
}

var (
	columns = regexp.MustCompile(`("columnDefinitions":)\[.*?\](,"rows":)`)
	cellRow = regexp.MustCompile(`"cells":\[.*?\],"object":`)
	age     = regexp.MustCompile(`([\[,])"(?:\d+[smhdy])+"`)

	uid     = regexp.MustCompile(`"uid":"[^"]*"`)
	created = regexp.MustCompile(`"(creationTimestamp|time)":"[^"]*"`)
	digits  = regexp.MustCompile(`\d+`)

	tooOld        = regexp.MustCompile(`(too old resource version: \d+ )\(\d+\)`)
	serverAddress = regexp.MustCompile(`"serverAddress":"[^"]*"`)
)

// withoutAges blanks the cells of a Table that are durations.
func withoutAges(body []byte) []byte {
	return cellRow.ReplaceAllFunc(body, func(row []byte) []byte { return age.ReplaceAll(row, []byte(`${1}"AGE"`)) })
}

// printed blanks the parts of a watch of Tables that depend on the time. The API
// server's watches share encoded events: some get the columns more than once, and all
// get an age as it was first printed.
func printed(body []byte) []byte {
	return columns.ReplaceAll(withoutAges(body), []byte(`${1}null${2}`))
}

// unzipped decompresses: two servers may compress differently.
func unzipped(body []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return append(text, err.Error()...)
	}
	return text
}

// withoutIdentity blanks the values that the API server generates for a new object.
func withoutIdentity(body []byte) []byte {
	return created.ReplaceAll(uid.ReplaceAll(body, []byte("-")), []byte("-"))
}

// withoutDigits blanks the RV of an empty list in protobuf, which has no other
// digits.
func withoutDigits(body []byte) []byte { return digits.ReplaceAll(body, []byte("-")) }

// withoutReplica blanks what differs between API servers of one cluster: the oldest RV
// that is in a watch cache, in the message of a 410, and the API server's address.
func withoutReplica(body []byte) []byte {
	return serverAddress.ReplaceAll(tooOld.ReplaceAll(body, []byte("${1}(RV)")), []byte("-"))
}

// nothing removes the body, so that only the status and the headers are compared.
func nothing([]byte) []byte { return nil }
