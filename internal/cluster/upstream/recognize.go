// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	versionPath = "/version"
	// maxQuoted is how much of an unexpected answer is quoted, in bytes.
	maxQuoted = 200
)

// isAPIAnswer reports whether an answer has a form of the Kubernetes API. Other servers
// answer in text or HTML, or with an error of their own.
func isAPIAnswer(res *http.Response) bool {
	if res.StatusCode == http.StatusNotModified {
		return true
	}
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	switch strings.TrimSpace(media) {
	case "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "application/cbor-seq":
		return true
	}
	return false
}

// recognize returns nil if the answer to a request for the version is that of a Kubernetes
// API server, which may refuse it with a Status. Otherwise the error quotes the answer.
func (u *Server) recognize(res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument))
	if err != nil {
		return fmt.Errorf("upstream %s: %s: %s", u.base.Host, versionPath, Cause(err))
	}
	var answer struct{ Kind, GitVersion string }
	if json.Unmarshal(text, &answer) == nil && (answer.GitVersion != "" || answer.Kind == "Status") {
		if u.broken.Store(false); res.StatusCode != http.StatusTooManyRequests { // which does not show that it serves anything
			u.heard()
		}
		return nil
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if len(line) > maxQuoted {
		line = strings.ToValidUTF8(line[:maxQuoted], "") + "…"
	}
	return fmt.Errorf("upstream %s does not answer as a Kubernetes API server: %s is %s %q", u.base.Host, versionPath, res.Status, redact(line))
}
