// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/watchkeeper/watchkeeper/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Port 0 uses a free port and prints it, and Main returns 0 when the context
// ends.
func TestServeOnAnyPort(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "upstream") }))
	defer upstream.Close()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, out := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		defer out.Close()
		code <- cli.Main(ctx, []string{"watchkeeper", "serve", "--server", upstream.URL, "-p", "0", "--admin-listen=", "--data-dir="}, strings.NewReader(""), out, &stderr)
	}()
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "Starting to serve on ")
	if !ok || strings.HasSuffix(url, ":0") {
		t.Fatalf("printed %q", line)
	}
	res, err := http.Get(url + "/version")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if string(body) != "upstream" {
		t.Errorf("got %q", body)
	}
	cancel()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
		t.Errorf("printed more: %q, %v", rest, err)
	}
	if got := <-code; got != 0 {
		t.Errorf("exit code %d: %s", got, stderr.String())
	}
}
