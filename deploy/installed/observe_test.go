// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// complaints returns the warnings and errors of a log.
func complaints(log string) []string {
	return slices.DeleteFunc(strings.Split(log, "\n"), func(line string) bool {
		return !strings.Contains(line, `"level":"WARN"`) && !strings.Contains(line, `"level":"ERROR"`)
	})
}

// get asks the admin listener, as probes and Prometheus do.
func (p *process) get(t *testing.T, path string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.admin+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, body)
	}
	return string(body), err
}

// metric returns the value of a metric with its labels, as text; empty without one.
func (p *process) metric(t *testing.T, name string) string {
	t.Helper()
	all, err := p.get(t, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(all) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
