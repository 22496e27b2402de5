// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/freeport"
)

const demo = "../../demo/incident.wkr"

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"watchkeeper": main, "kubectl-watchkeeper": main})
}

// Scripts find these in their environment:
//
//	UPSTREAM  URL of a server that answers every request with its path
//	CLUSTER   URL of a simulated API server; CLUSTER_UID identifies its cluster
//	CLUSTER2  URL of one of another cluster, CLUSTER2_UID
//	BUSY      a port of 127.0.0.1 that is in use
//	PORT      a free port
//	HOME      a directory without a kubeconfig
//	DEMO      the recording of make demo
//	SCRIPTS   the directory of the scripts of make
//
// and these commands in addition to the standard ones:
//
//	fetch URL [HEADER:VALUE...]   print status and body, waiting until the server is there;
//	                              a URL of the form unix:PATH:/path asks a socket
//	keypair CERT KEY              write a certificate for 127.0.0.1 and its key
//	listen PATH                   serve nothing on a Unix socket
func TestScripts(t *testing.T) { runScripts(t, "script") }

// runScripts runs the scripts of a directory of testdata.
func runScripts(t *testing.T, dir string) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "upstream %s %s %s\n", r.Method, r.RequestURI, r.Header.Get("Impersonate-User"))
		if strings.Contains(r.RequestURI, "follow=") {
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(upstream.Close) // scripts run in parallel, after this function returned
	clusters := [...]string{"cluster-1", "cluster-2"}
	var urls [len(clusters)]string
	for i, uid := range clusters {
		cluster := httptest.NewServer(fakeapi.New(fakeapi.Options{
			Resources: []fakeapi.Resource{fakeapi.Pods, fakeapi.Nodes, fakeapi.Deployments}, ClusterUID: uid,
		}))
		t.Cleanup(cluster.Close)
		urls[i] = cluster.URL
	}
	demoDir, err := filepath.Abs(filepath.Join("..", "..", "demo"))
	if err != nil {
		t.Fatal(err)
	}
	scriptsDir := filepath.Join(demoDir, "..", "scripts")
	for _, dir := range []string{demoDir, scriptsDir} {
		// Only other processes read these files: now go test knows that its result depends on them.
		if _, err := os.ReadDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })

	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", dir),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			port, err := freeport.Pick(30000, 2000) // clustertest and localcluster use lower ones
			if err != nil {
				return err
			}
			env.Setenv("UPSTREAM", upstream.URL)
			env.Setenv("CLUSTER", urls[0])
			env.Setenv("CLUSTER_UID", clusters[0])
			env.Setenv("CLUSTER2", urls[1])
			env.Setenv("CLUSTER2_UID", clusters[1])
			env.Setenv("BUSY", portOf(busy))
			env.Setenv("PORT", port)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("DEMO", filepath.Join(demoDir, "incident.wkr"))
			env.Setenv("SCRIPTS", scriptsDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fetch":   fetch,
			"keypair": keypair,
			"listen":  listen,
		},
	})
}

func portOf(l net.Listener) string { return fmt.Sprint(l.Addr().(*net.TCPAddr).Port) }

func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fetch URL [HEADER:VALUE...]")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	target := args[0]
	if rest, ok := strings.CutPrefix(target, "unix:"); ok {
		path, request, _ := strings.Cut(rest, ":")
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", ts.MkAbs(path))
		}
		target = "http://localhost" + request
	}
	req, err := http.NewRequest(http.MethodGet, target, nil)
	ts.Check(err)
	for _, header := range args[1:] {
		name, value, _ := strings.Cut(header, ":")
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	var res *http.Response
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if res, err = transport.RoundTrip(req); err == nil {
			break
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: %v", target, err)
		}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n%s%s\n", res.Status, res.Header.Get("Location"), body)
}

func keypair(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keypair CERT KEY")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
}

func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listen PATH")
	}
	l, err := net.Listen("unix", ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(func() { l.Close() })
}
