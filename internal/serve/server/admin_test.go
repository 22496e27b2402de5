// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestProfilesFromHere: where the admin listener is open to other machines, they get no
// profiles.
func TestProfilesFromHere(t *testing.T) {
	admin := newAdmin(nil, nil, nil, prometheus.NewRegistry(), &net.TCPAddr{IP: net.IPv4zero, Port: 8002})
	for client, want := range map[string]int{"127.0.0.1:1": 200, "[::1]:1": 200, "127.0.0.6:1": 403, "192.0.2.1:1": 403, "[2001:db8::1]:1": 403, "": 403} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/symbol"} {
			r := httptest.NewRequest("GET", "http://localhost:8002"+path, nil)
			r.RemoteAddr = client
			w := httptest.NewRecorder()
			admin.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s from %q: %d, want %d", path, client, w.Code, want)
			}
		}
	}
	for path, client := range map[string]string{
		"http://localhost/debug/pprof/profile": "192.0.2.1:1", "http://localhost/debug/pprof/trace": "192.0.2.1:1",
		"http://rebound.example.com/debug/pprof/": "127.0.0.1:1",
	} {
		r := httptest.NewRequest("GET", path, nil)
		r.RemoteAddr = client
		w := httptest.NewRecorder()
		if admin.ServeHTTP(w, r); w.Code != 403 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestAdminOrigins: the admin listener answers no browser that asks for a page of another
// origin, and its answers are not taken for scripts.
func TestAdminOrigins(t *testing.T) {
	for _, ip := range []net.IP{net.IPv4zero, net.IPv4(127, 0, 0, 1)} {
		admin := newAdmin(nil, nil, nil, prometheus.NewRegistry(), &net.TCPAddr{IP: ip, Port: 8002})
		for _, path := range []string{"/metrics", "/livez", "/debug/pprof/heap"} {
			for _, c := range []struct {
				name, value string
				want        int
			}{
				{"Accept", "*/*", 200}, {"Origin", "http://localhost:8002", 200}, {"Sec-Fetch-Site", "none", 200},
				{"Origin", "http://evil.example", 403}, {"Sec-Fetch-Site", "cross-site", 403}, {"Sec-Fetch-Site", "same-site", 403},
			} {
				r := httptest.NewRequest("GET", "http://localhost:8002"+path, nil)
				r.RemoteAddr = "127.0.0.1:1"
				r.Header.Set(c.name, c.value)
				w := httptest.NewRecorder()
				if admin.ServeHTTP(w, r); w.Code != c.want || w.Header().Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("%s with %s: %s: %d %v", path, c.name, c.value, w.Code, w.Header())
				}
			}
		}
	}
}
