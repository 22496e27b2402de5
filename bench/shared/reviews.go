// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
)

// auditPolicy makes the API server log who each SubjectAccessReview is about.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  resources: [{group: authorization.k8s.io, resources: [subjectaccessreviews]}]
- level: None
`

func (r *harness) auditLog() string { return filepath.Join(r.work, "audit.log") }

// counts are the numbers of requests that the API server has answered.
type counts struct{ tokens, rights, reads float64 }

func (c counts) since(before counts) counts {
	return counts{c.tokens - before.tokens, c.rights - before.rights, c.reads - before.reads}
}

// counts returns the API server's numbers of TokenReviews, of SubjectAccessReviews, and of
// gets and lists of ConfigMaps.
func (r *harness) counts() (c counts, err error) {
	var text bytes.Buffer
	if err := process.Fetch(r.api.debug, r.api.debugURL+"/metrics", &text); err != nil {
		return c, err
	}
	return parseCounts(&text)
}

func parseCounts(text io.Reader) (c counts, err error) {
	in := bufio.NewScanner(text)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		labels, ok := strings.CutPrefix(in.Text(), "apiserver_request_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(labels, "} ")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return c, fmt.Errorf("apiserver_request_total: %w", err)
		}
		has := func(label string) bool { return strings.Contains(","+labels+",", ","+label+",") }
		switch {
		case has(`resource="tokenreviews"`):
			c.tokens += v
		case has(`resource="subjectaccessreviews"`):
			c.rights += v
		case has(`resource="configmaps"`) && (has(`verb="LIST"`) || has(`verb="GET"`)):
			c.reads += v
		}
	}
	return c, in.Err()
}

// A review is a SubjectAccessReview in the audit log.
type review struct {
	user string
	at   time.Time
}

// auditEnd returns the current size of the audit log.
func (r *harness) auditEnd() (int64, error) {
	info, err := os.Stat(r.auditLog())
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// audited returns the reviews in the audit log from an offset on.
func (r *harness) audited(from int64) ([]review, error) {
	f, err := os.Open(r.auditLog())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	return parseAudit(f)
}

func parseAudit(text io.Reader) (all []review, err error) {
	in := bufio.NewReader(text)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF { // a line that is being written is not complete
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var event struct {
			RequestReceivedTimestamp time.Time
			RequestObject            struct{ Spec struct{ User string } }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		all = append(all, review{event.RequestObject.Spec.User, event.RequestReceivedTimestamp})
	}
}
