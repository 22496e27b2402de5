// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// serve returns an endpoint that answers with a function.
func serve(t *testing.T, f http.HandlerFunc) *compare.Endpoint {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(client.CloseIdleConnections)
	return &compare.Endpoint{URL: s.URL, Client: client, Plain: client}
}

// answers returns an endpoint with a fixed answer: a status, headers and, after an
// empty line, the body.
func answers(t *testing.T, text string) *compare.Endpoint {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		code := http.StatusOK
		for line := range strings.Lines(head) {
			if m := header.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				w.Header().Add(m[1], m[2])
			} else if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				code = n
			}
		}
		w.WriteHeader(code)
		io.WriteString(w, body) //nolint:errcheck // a test server
	})
}

const (
	testList = "Content-Type: application/json\n\n" + `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"17","continue":"ey"},"items":[{"metadata":{"name":"a","namespace":"n"}}]}` + "\n"
	testGone = "404\nContent-Type: application/json\n\n" + `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"gone away","code":404}` + "\n"

	testAdded    = `{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}}` + "\n"
	testBookmark = `{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	testWatch    = "Content-Type: application/json\n\n" + testAdded + testBookmark
)

// TestExpectations: each expectation holds for one answer, and fails for another.
func TestExpectations(t *testing.T) {
	for expectation, test := range map[string]struct{ holds, fails string }{
		"< 404":                            {testGone, testList},
		"< 200 or 404":                     {testGone, "500"},
		"< Content-Type: application/json": {testList, "Content-Type: text/plain\n\nx"},
		"< Warning:":                       {testList, "Warning: old\n\nx"},
		"status 404 NotFound gone away":    {testGone, strings.Replace(testGone, "away", "", 1)},
		"status 404 NotFound gone…":        {testGone, testList},
		"status 404 - gone away":           {strings.Replace(testGone, "NotFound", "", 1), testGone},
		"kind PodList":                     {testList, testGone},
		"items a":                          {testList, strings.Replace(testList, `"a"`, `"b"`, 1)},
		"items n/a":                        {testList, testGone},
		"items -":                          {strings.Replace(testList, `{"metadata":{"name":"a","namespace":"n"}}`, "", 1), testList},
		"length 1":                         {testList, strings.Replace(testList, `{"metadata":{"name":"a","namespace":"n"}}`, "", 1)},
		"events ADDED a, BOOKMARK end":     {testWatch, strings.Replace(testWatch, "true", "false", 1)},
		"added a":                          {"Content-Type: application/json\n\n" + testAdded, testWatch},
		"has PodList":                      {testList, testGone},
		"lacks PodList":                    {testGone, testList},
		`starts \{"kind":"Pod`:             {testList, testGone},
		"indented":                         {"\n\n{\n  \"kind\": \"x\"\n}", testList},
		"compact":                          {testList, "\n\n{\n  \"kind\": \"x\"\n}"},
		"one-line":                         {testList, strings.TrimSuffix(testList, "\n")},
		"envelope Pod":                     {"\n\nk8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x01x", testList},
		"columns-once":                     {"\n\n{\"x\":1}\n{\"columnDefinitions\":null}\n", "\n\n{\"x\":1}\n{\"x\":1}\n"},
		"clean-end":                        {testList, "Content-Length: 500\n\nx"},
		"rv-from 17":                       {testList, strings.Replace(testList, "17", "16", 1)},
	} {
		t.Run(expectation, func(t *testing.T) {
			rule := testRule(t, "> GET /x\n"+expectation+"\n")
			holds, fails := answers(t, test.holds), answers(t, test.fails)
			if err := runOn(t, rule, holds, holds); err != nil {
				t.Errorf("the expectation fails for %q: %v", test.holds, err)
			}
			if err := runOn(t, rule, fails, fails); err == nil || onlyDifferences(err) || !strings.Contains(err.Error(), "test.txtar:7: ") {
				t.Errorf("for %q the error is %v", test.fails, err)
			}
		})
	}
}

// TestDifferences: a rule fails only if the gateway's answer differs; a mask hides the
// part that it names.
func TestDifferences(t *testing.T) {
	later := strings.Replace(testList, "17", "18", 1)
	for name, test := range map[string]struct {
		rule, want, got string
		differs         bool
	}{
		"same":             {"> GET /x\n", testList, testList, false},
		"status":           {"> GET /x\n", testList, testGone, true},
		"header":           {"> GET /x\n", testList, "Warning: old\n" + testList, true},
		"body":             {"> GET /x\n", testList, later, true},
		"mask":             {"> GET /x\nmask list-rv\n", testList, later, false},
		"more than masked": {"> GET /x\nmask list-rv\n", testList, strings.Replace(later, `"a"`, `"b"`, 1), true},
		"tries":            {"> GET /x\ntries 5\n", testList, later, true},
		"second request":   {"> GET /x\nmask body\n> GET /x\n", testList, later, true},
		"second row":       {"each mask\n  body\n  ages\n> GET /x\nmask $mask\n", testList, later, true},
		"second block":     {"> GET /x\nmask body\n\n> GET /x\n", testList, later, true},

		"events":           {"open /x\nevents ADDED a\n", testWatch, testWatch, false},
		"another event":    {"open /x\nevents ADDED a\n", testWatch, strings.Replace(testWatch, `"7"`, `"8"`, 1), true},
		"another bookmark": {"open /x\nevents ADDED a, BOOKMARK end\n", testWatch, strings.Replace(testWatch, `"9"`, `"8"`, 1), false},
		"missing event":    {"open /x\nto-end ADDED a, BOOKMARK end\n", testWatch, "Content-Type: application/json\n\n" + testAdded, true},
		"until":            {"open /x\nuntil BOOKMARK end\n", testWatch, testWatch, false},
		"more until":       {"open /x\nuntil BOOKMARK end\n", testWatch, "Content-Type: application/json\n\n" + testAdded + testAdded + testBookmark, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := runOn(t, testRule(t, test.rule), answers(t, test.want), answers(t, test.got))
			if (err != nil) != test.differs || err != nil && !onlyDifferences(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestWatchStatements: statements that check the frames of a watch can fail.
func TestWatchStatements(t *testing.T) {
	for text, want := range map[string]string{
		"open /x\nevents ADDED b\n":                                  `["ADDED a"], not ["ADDED b"]`,
		"open /x\nto-end ADDED a\n":                                  `not ["ADDED a"]`,
		"open /x\nevents ADDED a\nframe 1 has x\n":                   `without "x"`,
		"open /x\nevents ADDED a\nframe 1 lacks a\n":                 `with "a"`,
		"open /x\nevents ADDED a\nframe 1 rv-from 8\n":               "resourceVersion 7, not 8 or later",
		"open /x\nevents ADDED a\nframe 2 has x\n":                   "there is no frame 2",
		"open /x\nevents ADDED a\nlet b $last\n> GET /x\nhas $b$b\n": `without "77"`,
		"events ADDED a\n":                                           "no watch is open",
	} {
		server := answers(t, testWatch)
		if err := runOn(t, testRule(t, text), server, server); err == nil || onlyDifferences(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestKeep: a value kept from an answer is sent with the next request.
func TestKeep(t *testing.T) {
	var last atomic.Value
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		last.Store(r.URL.RawQuery + " " + r.Header.Get("Accept"))
		_, body, _ := strings.Cut(testList, "\n\n")
		io.WriteString(w, body) //nolint:errcheck // a test server
	})
	rule := testRule(t, "let media text/x\n> GET /x\nkeep token continue\nkeep rv resourceVersion\n> GET /x?continue=${token|base64}&rv=$rv\n> Accept: $media\n")
	if err := runOn(t, rule, server, server); err != nil {
		t.Fatal(err)
	}
	if got := last.Load(); got != "continue=ZXk&rv=17 text/x" {
		t.Errorf("the second request has %q", got)
	}
}

// A breaker changes the answers of an endpoint, except those to requests that wait
// for an RV.
type breaker struct {
	http.RoundTripper
	answer func(*http.Response)
}

func (b breaker) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil && !strings.Contains(r.URL.RawQuery, "nothing-of-that-name") {
		b.answer(resp)
	}
	return resp, err
}

// brokenBody changes the events of a watch, and appends to any other body.
type brokenBody struct {
	io.ReadCloser
	more io.Reader
}

func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	copy(p, bytes.ReplaceAll(p[:n], []byte("ADDED"), []byte("NEVER")))
	if err != io.EOF {
		return n, err
	}
	more, err := b.more.Read(p[n:])
	return n + more, err
}

// brokenConn is the connection of a WebSocket.
type brokenConn struct{ net.Conn }

func (c brokenConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	copy(p, bytes.ReplaceAll(p[:n], []byte("ADDED"), []byte("NEVER")))
	return n, err
}

// testBroken runs the first rule of each file against a gateway whose answers
// are broken. Each has to fail, and to say that the endpoints differ.
func testBroken(t *testing.T, env *Env) {
	for name, answer := range map[string]func(*http.Response){
		"status": func(r *http.Response) {
			r.StatusCode++
			r.Body.Close() // the body of a watch would not end
			r.Body = http.NoBody
		},
		"header": func(r *http.Response) { r.Header.Set("X-Broken", "yes") },
		"body":   func(r *http.Response) { r.Body = &brokenBody{r.Body, strings.NewReader(" ")} },
	} {
		broken := *env
		got := *env.Got
		for _, client := range []**http.Client{&got.Client, &got.HTTP2, &got.Plain} {
			*client = &http.Client{Transport: breaker{(*client).Transport, answer}}
		}
		dial := got.Dial
		got.Dial = func(ctx context.Context) (net.Conn, error) {
			conn, err := dial(ctx)
			return brokenConn{conn}, err
		}
		broken.Got, broken.once = &got, true
		seen := map[string]bool{}
		for _, rule := range Rules() {
			if rule.inGo || rule.slow || seen[rule.file] {
				continue
			}
			seen[rule.file] = true
			t.Run(name+"/"+rule.Name, func(t *testing.T) {
				t.Parallel()
				r := rule
				r.Name += name // for separate namespaces
				if res := broken.run(t.Context(), r); res.err == nil || !onlyDifferences(res.err) {
					t.Errorf("got %v", res.err)
				}
			})
		}
	}
}
