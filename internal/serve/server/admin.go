// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/record/recorder"
	"github.com/watchkeeper/watchkeeper/internal/serve/gateway"
)

// newAdmin serves health, metrics and profiles. It leaves out pprof's cmdline,
// because the arguments may include a token.
func newAdmin(gw *gateway.Gateway, up *upstream.Server, rec *recorder.Recorder, registry *prometheus.Registry, addr net.Addr) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) { readyz(gw, up, rec, w, r) })
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	mux.Handle("/debug/pprof/", fromHere(pprof.Index))
	mux.HandleFunc("/debug/pprof/cmdline", http.NotFound)
	mux.Handle("/debug/pprof/profile", fromHere(pprof.Profile))
	mux.Handle("/debug/pprof/symbol", fromHere(pprof.Symbol))
	mux.Handle("/debug/pprof/trace", fromHere(pprof.Trace))
	if isLoopback(addr) {
		return ownOrigin(localOnly(mux))
	}
	return ownOrigin(mux)
}

// ownOrigin refuses what a browser asks for a page of another origin, which could not read
// the answer, but begin a profile.
func ownOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if request.IsForeign(r) {
			plain(w, http.StatusForbidden, "a page of another origin may not ask here\n")
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// buildInfo is a metric whose labels describe the program.
func buildInfo(opts Options) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "watchkeeper_build_info",
		Help:        "1; the labels describe the program.",
		ConstLabels: prometheus.Labels{"version": opts.Version, "revision": opts.Revision, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

// readyz answers as the API server does: "ok", or one line per check with
// ?verbose or after a failure. A failing resource does not make the gateway
// unready, because its requests are passed through. Nor does failing recording,
// but it is always reported.
func readyz(gw *gateway.Gateway, up *upstream.Server, rec *recorder.Recorder, w http.ResponseWriter, r *http.Request) {
	var lines strings.Builder
	lines.WriteString("[+]ping ok\n")
	err := gw.Ready(r.Context())
	if err != nil {
		fmt.Fprintf(&lines, "[-]gateway failed: %v\n", err)
	} else {
		lines.WriteString("[+]gateway ok\n")
	}
	for _, res := range gw.Resources() {
		describe(&lines, res)
	}
	note := "" // on what is not recorded
	status, recording := rec.Status()
	switch {
	case !recording:
	case !status.Recording:
		note = fmt.Sprintf("[-]history nothing is recorded: %s\n", status.Problem)
	case len(status.Refused)+len(status.Unwatched) > 0:
		note = fmt.Sprintf("[-]history recording %d of %d resources%s%s\n", status.Resources-len(status.Refused)-len(status.Unwatched), status.Resources,
			listed("; the API server refuses to list and watch: ", status.Refused), listed("; no watch now: ", status.Unwatched))
	default:
		since := ""
		if c := up.Contact(); c.Err != nil {
			since = "; " + c.String()
		}
		fmt.Fprintf(&lines, "[+]history recording: dir=%s resources=%d bytes=%d%s\n", status.Dir, status.Resources, status.DiskBytes, since)
	}
	for _, problem := range status.NotServed {
		note += fmt.Sprintf("[-]history not recorded: --record: %s\n", problem)
	}
	lines.WriteString(note)
	switch {
	case err != nil:
		plain(w, http.StatusServiceUnavailable, lines.String()+"readyz check failed\n")
	case r.URL.Query().Has("verbose"):
		plain(w, http.StatusOK, lines.String()+"readyz check passed\n")
	case note != "":
		plain(w, http.StatusOK, "ok\n"+note)
	default:
		plain(w, http.StatusOK, "ok")
	}
}

func listed(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return what + strings.Join(names, ", ")
}

func describe(out io.Writer, res gateway.ResourceStatus) {
	facts := fmt.Sprintf("rv=%d objects=%d watches=%d contact=%s", res.RV, res.Objects, res.Watches, ago(res.LastContact))
	if res.LastError != "" {
		fmt.Fprintf(out, "[-]resource/%s %s: %s %s known=%s\n", res.Resource, res.State, res.LastError, facts, ago(res.LastKnown))
		return
	}
	fmt.Fprintf(out, "[+]resource/%s %s: %s\n", res.Resource, res.State, facts)
}

func ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return time.Since(t).Round(time.Millisecond).String() + " ago"
}

func plain(w http.ResponseWriter, code int, body string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	io.WriteString(w, body) //nolint:errcheck // the client is gone
}

// fromHere refuses clients on other machines. In a Pod the admin listener is open to the
// cluster, for probes and metrics, and profiles cost CPU; "kubectl port-forward" connects
// from inside the Pod.
func fromHere(next http.HandlerFunc) http.Handler {
	return localOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A sidecar may connect from another loopback address for clients elsewhere.
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil || host != "127.0.0.1" && host != "::1" {
			plain(w, http.StatusForbidden, "profiles are for clients on this machine: use kubectl port-forward\n")
			return
		}
		next(w, r)
	}))
}

// localOnly refuses requests whose Host is not this machine: with such a Host a
// web page would reach a loopback address (DNS rebinding).
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if ip := net.ParseIP(host); !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
			plain(w, http.StatusForbidden, fmt.Sprintf("host %q is not this machine\n", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}
