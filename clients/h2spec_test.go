// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const (
	// h2specAddress is the environment variable with the URL, or host and port, of a
	// server to test instead of gateways. No cluster is started then:
	//
	//	H2SPEC_ADDR=127.0.0.1:9001 go test -run H2Spec .
	//
	// H2SPEC_PATH is the path of its requests.
	h2specAddress = "H2SPEC_ADDR"
	h2specPath    = "H2SPEC_PATH"
	// h2specTimeout is how long h2spec waits for each frame. Most cases that pass do
	// not wait for it.
	h2specTimeout = 5 * time.Second
	// h2specCases is the number of cases of h2spec, strict ones included.
	h2specCases = 146
)

// TestH2Spec runs every case of h2spec against the gateway, in cleartext with prior
// knowledge and over TLS. A skipped case is one that could not be judged, so it fails.
func TestH2Spec(t *testing.T) {
	clustertest.SkipShort(t)
	servers := map[string]string{}
	if at := os.Getenv(h2specAddress); at != "" {
		servers["given"] = at
	} else {
		servers["cleartext"] = gw.URL
		servers["TLS"] = tlsGateway(t).URL
	}
	for name, at := range servers {
		t.Run(name, func(t *testing.T) { runH2Spec(t, at) })
	}
}

// runH2Spec runs each case as a subtest that is named as h2spec does: by the specification,
// the section and its number in it. They share no connection, so they run in parallel.
func runH2Spec(t *testing.T, address string) {
	c := h2specConfig(t, address)
	cases := 0
	var walk func(*spec.TestGroup)
	walk = func(g *spec.TestGroup) {
		for i, one := range append(g.Tests, g.StrictTests...) {
			cases++
			t.Run(fmt.Sprintf("%s/%d", g.ID(), i+1), func(t *testing.T) {
				t.Parallel()
				runH2SpecCase(t, c, one)
			})
		}
		for _, inner := range g.Groups {
			walk(inner)
		}
	}
	for _, g := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		walk(g)
	}
	if cases != h2specCases {
		t.Errorf("h2spec has %d cases, not %d", cases, h2specCases)
	}
}

func h2specConfig(t *testing.T, address string) config.Config {
	t.Helper()
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatalf("%s: the port: %v", address, err)
	}
	path := os.Getenv(h2specPath)
	if path == "" {
		path = "/api/v1/namespaces?resourceVersion=0" // a list that the gateway answers itself
	}
	return config.Config{
		Host:         at.Hostname(),
		Port:         port,
		Path:         path,
		Timeout:      h2specTimeout,
		MaxHeaderLen: 4000, // h2spec's default: five exceed the initial maximum of a frame
		Strict:       true,
		TLS:          at.Scheme == "https",
		Insecure:     true,
	}
}

// runH2SpecCase runs a case without h2spec's own runner, which ends the process when it
// cannot connect, and writes to one terminal.
func runH2SpecCase(t *testing.T, c config.Config, one *spec.TestCase) {
	conn, err := spec.Dial(&c)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A panic of a case, such as that of an unexpected event, is a failure of it alone.
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s\n%s\n  panic: %v", one.Desc, one.Requirement, p)
		}
	}()
	err = one.Run(&c, conn)
	if err != nil && !c.TLS && one.Desc == "Sends invalid connection preface" {
		err = answersInvalidPreface(c)
	}
	if wrong, ok := errors.AsType[*spec.TestError](err); ok {
		t.Errorf("%s\n%s\n  expected: %s\n  actual:   %s", one.Desc, one.Requirement, strings.Join(wrong.Expected, "\n            "), wrong.Actual)
	} else if err != nil {
		t.Errorf("%s\n%s\n  %v", one.Desc, one.Requirement, err)
	}
}

// answersInvalidPreface sends text that is no preface, as h2spec's case 3.5/2 does, to a
// port that is also for HTTP/1.1. There the text is an invalid HTTP/1.1 request. Its
// answer, which h2spec tries to read as a frame, has to be 400, and the last.
func answersInvalidPreface(c config.Config) error {
	conn, err := net.DialTimeout("tcp", c.Addr(), c.Timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(c.Timeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "INVALID CONNECTION PREFACE\r\n\r\n"); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) {
		err = fmt.Errorf("the answer is %q", answer)
	}
	return err
}
