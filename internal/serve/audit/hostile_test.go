// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/watchkeeper/watchkeeper/internal/serve/audit"
)

// raw sends a request as it is, and returns the response.
func (rg *rig) raw(t *testing.T, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", rg.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

var newID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func TestAuditIDs(t *testing.T) {
	rg := newRig(t, options(t, metadataPolicy), func(_ *audit.Event, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Forwarded-Id", strings.Join(r.Header["Audit-Id"], "|"))
	})
	long := strings.Repeat("x", 1024)
	want := map[string]string{} // by the URI; "" is a new ID
	for i, c := range []struct{ headers, want string }{
		{"", ""},
		{"Audit-ID: \r\n", ""},
		{"Audit-ID: a\r\n", "a"},
		{"audit-id: with space %00 and 'quotes\"\r\n", "with space %00 and 'quotes\""},
		{"Audit-ID: first\r\nAudit-ID: second\r\n", "first"},
		{"Audit-ID: " + long + "\r\n", long},
		{"Audit-ID: " + long + "x\r\n", ""},
		{"Audit-ID: " + strings.Repeat("y", 900_000) + "\r\n", ""},
		{"Audit-ID: \xff\xfe\r\n", ""},
		{"Audit-ID: ünïcode\r\n", ""},
		{"Audit-ID: tab\tinside\r\n", ""},
	} {
		uri := fmt.Sprintf("/%d", i)
		res := rg.raw(t, "GET "+uri+" HTTP/1.1\r\nHost: x\r\nTest-User: jane\r\n"+c.headers+"\r\n")
		got := res.Header["Audit-Id"]
		if len(got) != 1 || res.Header.Get("Forwarded-Id") != got[0] {
			t.Fatalf("%d: answered %.50q, forwarded %.50q", i, got, res.Header.Get("Forwarded-Id"))
		}
		if want[uri] = got[0]; c.want != got[0] && (c.want != "" || !newID.MatchString(got[0])) {
			t.Errorf("%d: ID %.50q, want %.50q", i, got[0], c.want)
		}
	}
	events := rg.events(t)
	if len(events) != 2*len(want) {
		t.Errorf("%d events", len(events))
	}
	for _, e := range events {
		if string(e.AuditID) != want[e.RequestURI] {
			t.Errorf("%s: event %.50q, answered %.50q", e.RequestURI, e.AuditID, want[e.RequestURI])
		}
	}
}

// TestHostileInput: what a client sends makes neither further lines, nor invalid ones, nor
// lines much longer than usual, in both formats.
func TestHostileInput(t *testing.T) {
	const maxLine = 64 << 10
	requests := []string{
		"GET /api/v1/pods HTTP/1.1\r\nUser-Agent: a\tb\\n{\"}\r\n",
		"GET /api/v1/pods HTTP/1.1\r\nUser-Agent: \xff\xfe\xc0\r\n",
		"GET /api/v1/pods?x=\xff\xfe&y=%0a%0d HTTP/1.1\r\n",
		"GET /api/v1/namespaces/%0aEvent/pods/%00%ff HTTP/1.1\r\n",
		"GET /api/v1/pods?x=" + strings.Repeat("a", 1_000_000) + " HTTP/1.1\r\n",
		"GET /api/v1/namespaces/" + strings.Repeat("n", 500_000) + "/pods/" + strings.Repeat("p", 400_000) + " HTTP/1.1\r\n",
		"GET /apis/" + strings.Repeat("g", 300_000) + "/" + strings.Repeat("v", 300_000) + "/" + strings.Repeat("r", 300_000) + " HTTP/1.1\r\n",
		"GET /" + strings.Repeat("%ff", 300_000) + " HTTP/1.1\r\n",
		strings.Repeat("M", 900_000) + " /x HTTP/1.1\r\n",
		"GET /x HTTP/1.1\r\nUser-Agent: " + strings.Repeat("u", 900_000) + "\r\n",
		"GET /x HTTP/1.1\r\nX-Forwarded-For: " + strings.Repeat("192.0.2.1, ", 80_000) + "192.0.2.99\r\n",
		"GET /x HTTP/1.1\r\n" + strings.Repeat("X-Forwarded-For: 192.0.2.1\r\n", 30_000),
		"GET /x HTTP/1.1\r\nX-Real-Ip: " + strings.Repeat("1", 900_000) + "\r\n",
		"GET /x HTTP/1.1\r\nImpersonate-User: " + strings.Repeat("i", 900_000) + "\r\n",
		"GET /x HTTP/1.1\r\nImpersonate-User: i\r\n" + strings.Repeat("Impersonate-Group: g\r\n", 40_000),
		"GET /x HTTP/1.1\r\nImpersonate-User: i\r\nImpersonate-Extra-%0a%zz: \xff\r\nImpersonate-Extra-: x\r\n",
		"GET http://user:pass@x/api/v1/pods HTTP/1.1\r\n",
	}
	for _, format := range audit.Formats {
		t.Run(format, func(t *testing.T) {
			o := options(t, metadataPolicy)
			o.LogFormat = format
			rg := newRig(t, o, ok)
			for i, r := range requests {
				if res := rg.raw(t, r+"Host: x\r\nTest-User: jane\r\n\r\n"); res.StatusCode != http.StatusOK {
					t.Errorf("%d: %s", i, res.Status)
				}
			}
			rg.stop()
			text, err := os.ReadFile(rg.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := bytes.Count(text, []byte("\n")); got != 2*len(requests) {
				t.Errorf("%d lines for %d requests", got, len(requests))
			}
			for line := range bytes.Lines(text) {
				if len(line) > maxLine {
					t.Errorf("a line of %d bytes: %.100s", len(line), line)
				}
				if !utf8.Valid(line) || bytes.ContainsAny(line[:len(line)-1], "\x00\r\t\v\f\x1b") {
					t.Errorf("not text: %.500q", line)
				}
				if bytes.Contains(line, []byte("pass@")) {
					t.Errorf("credentials in %s", line)
				}
			}
			if format == "json" {
				decode(t, text)
			}
			if log := rg.log.String(); log != "" {
				t.Errorf("log: %.500s", log)
			}
		})
	}
}

// TestNoTokens: no part of an event has a secret of a request, whatever the outcome.
func TestNoTokens(t *testing.T) {
	const secret = "hush-1234"
	for _, format := range audit.Formats {
		t.Run(format, func(t *testing.T) {
			o := options(t, metadataPolicy)
			o.LogFormat = format
			rg := newRig(t, o, ok)
			uris := []string{
				"/x?access_token=$", "/x?a=b&token=$&c=d", "/x?a;Authorization=$;b", "/x?%74oken=$", "/x?ACCESS_TOKEN=$&token=$",
				"/x?token=$%26x", "/x?id_token=$=$",
				"/watchkeeper/v1/multiwatch?watch=%2Fapi%2Fv1%2Fpods%3Fwatch%3D1%26access_token%3D$&watch=/x?e=f;token=$;g", "/api/v1/namespaces/a/services/s/proxy/login?token=$",
			}
			for _, uri := range uris {
				uri = strings.ReplaceAll(uri, "$", secret)
				for _, name := range []string{"jane", ""} {
					rg.doAs(t, "GET", uri, name, "Authorization", "Bearer "+secret, "Cookie", secret,
						"Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io."+secret, "X-Remote-Extra-Token", secret)
				}
			}
			rg.stop()
			text, err := os.ReadFile(rg.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := bytes.Count(text, []byte("\n")); got != 3*len(uris)+1 { // the proxy is long-running
				t.Errorf("%d lines", got)
			}
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("the secret is in %s", text)
			}
			for _, kept := range []string{"a=b", "c=d", ";b", "/proxy/login"} {
				if !bytes.Contains(text, []byte(kept)) {
					t.Errorf("%s is not in %s", kept, text)
				}
			}
		})
	}
}
