// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// requestOf returns the request that net/http's server would parse from the header
// lines, false if it would refuse it.
func requestOf(method, target, header string) (*http.Request, bool) {
	text := method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n\r\n"
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil || r.Host != "localhost" {
		return nil, false
	}
	for name, values := range r.Header { // the server checks these after parsing
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			return nil, false
		}
	}
	return r, true
}
