// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"encoding/base64"
	"regexp"
)

// A Mask blanks the parts of a body that may differ between two endpoints because
// they answered at different times or have reached different RVs.
type Mask func(body []byte) []byte

var (
	// The metadata of a list begins with one of these members; that of an object
	// never does.
	listRV = regexp.MustCompile(`("metadata":\s*\{\s*(?:"continue":\s*"[^"]*",\s*)?(?:"remainingItemCount":\s*\d+,\s*)?"resourceVersion":\s*")\d+"`)
	yamlRV = regexp.MustCompile(`(?m)^  resourceVersion: "\d+"$`)

	currentRV = regexp.MustCompile(`current: \d+`)
	token     = regexp.MustCompile(`"continue":\s*"([^"]+)"`)
	tokenRV   = regexp.MustCompile(`"rv":\d+`)
)

// ListRV blanks the resourceVersion of a list in JSON or YAML, and that within
// its continue token.
func ListRV(body []byte) []byte {
	body = listRV.ReplaceAll(body, []byte(`${1}RV"`))
	body = token.ReplaceAllFunc(body, func(m []byte) []byte {
		text := token.FindSubmatch(m)[1]
		plain, err := base64.RawURLEncoding.DecodeString(string(text))
		if err != nil {
			return m
		}
		return bytes.Replace(m, text, tokenRV.ReplaceAll(plain, []byte(`"rv":RV`)), 1)
	})
	return yamlRV.ReplaceAll(body, []byte(`  resourceVersion: "RV"`))
}

// CurrentRV blanks the RV of the store in the message about a resourceVersion
// that is too large.
func CurrentRV(body []byte) []byte { return currentRV.ReplaceAll(body, []byte("current: RV")) }

// Bookmarks blanks the resourceVersions of the bookmarks in a watch, of any
// framing.
func Bookmarks(contentType string) Mask {
	return func(body []byte) []byte {
		frames, err := Frames(contentType, body)
		if err != nil {
			return body
		}
		var out []byte
		for _, f := range frames {
			out = append(out, f.masked()...)
		}
		return out
	}
}
