// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2"
)

// serve starts a server with and without TLS, and returns clients of both.
func serve(t *testing.T, handler http.Handler) map[string]*http.Client {
	t.Helper()
	clients := map[string]*http.Client{}
	for _, name := range []string{"TLS", "cleartext"} {
		server := httptest.NewUnstartedServer(handler)
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetHTTP1(true)
		server.Config.Protocols.SetHTTP2(true)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		h2.Configure(server.Config)
		server.Listener = h2.Listener(server.Listener)
		transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
		if name == "TLS" {
			server.EnableHTTP2 = true
			server.StartTLS()
			transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			transport.Protocols.SetHTTP2(true)
		} else {
			server.Start()
			transport.Protocols.SetUnencryptedHTTP2(true)
		}
		t.Cleanup(func() { transport.CloseIdleConnections(); server.Close() })
		clients[name] = &http.Client{Transport: base{transport, server.URL}}
	}
	return clients
}

// A base sends requests without a host to a server.
type base struct {
	transport http.RoundTripper
	url       string
}

func (b base) RoundTrip(r *http.Request) (*http.Response, error) {
	u, err := r.URL.Parse(b.url + r.URL.RequestURI())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL = u
	return b.transport.RoundTrip(r)
}

func TestRequests(t *testing.T) {
	big := make([]byte, 1<<20)
	_, _ = rand.Read(big)
	handler := http.NewServeMux()
	handler.HandleFunc("/small", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s %s", r.Proto, r.Host) })
	handler.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(big) })
	handler.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	handler.HandleFunc("/none", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })
	for name, client := range serve(t, handler) {
		t.Run(name, func(t *testing.T) {
			get := func(path string) (*http.Response, []byte) {
				resp, err := client.Get("http://h" + path)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return resp, body
			}
			resp, body := get("/small")
			if string(body) != "hello HTTP/2.0 h" || resp.Header.Get("Content-Length") != "16" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
				t.Errorf("%q %v", body, resp.Header)
			}
			if _, body = get("/big"); !bytes.Equal(body, big) {
				t.Errorf("%d bytes", len(body))
			}
			if resp, body = get("/none"); resp.StatusCode != 204 || len(body) > 0 {
				t.Errorf("%d %q", resp.StatusCode, body)
			}
			resp, err := client.Post("http://h/echo", "text/x", bytes.NewReader(big))
			if err != nil {
				t.Fatal(err)
			}
			body, err = io.ReadAll(resp.Body)
			if err != nil || !bytes.Equal(body, big) {
				t.Errorf("%v %d bytes", err, len(body))
			}
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if _, body := get("/big"); !bytes.Equal(body, big) {
						t.Errorf("%d bytes", len(body))
					}
				})
			}
			all.Wait()
		})
	}
}
