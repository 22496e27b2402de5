// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net"
	"net/http"
	"path"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/serve/selfreview"
)

// Defaults of FilterOptions: those of kubectl proxy, except that exec and
// attach are not rejected by path. See docs/adr/0001-exec-through-the-gateway.md.
const (
	DefaultAcceptHosts   = `^localhost$,^127\.0\.0\.1$,^\[::1\]$`
	DefaultAcceptPaths   = `^.*`
	DefaultRejectPaths   = ``
	DefaultRejectMethods = `^$`
)

// FilterOptions say which requests are served. Each list is regular expressions
// separated by commas, as for kubectl proxy; an empty list means its default.
type FilterOptions struct {
	// AcceptHosts are matched against the Host header without its port, in any case. This
	// is the defence against DNS rebinding.
	AcceptHosts string

	// AcceptPaths and RejectPaths are matched against the decoded path below
	// the API prefix. A rejection wins.
	AcceptPaths string
	RejectPaths string

	// RejectMethods are matched against the HTTP method.
	RejectMethods string

	// Disabled turns all of the above off. Cross-origin writes are refused even then.
	Disabled bool

	// ReadOnly refuses everything that could change the cluster, also if Disabled is set.
	ReadOnly bool
}

// filter decides which requests are refused before anything else happens.
type filter struct {
	disabled      bool
	readOnly      bool
	acceptHosts   []*regexp.Regexp
	acceptPaths   []*regexp.Regexp
	rejectPaths   []*regexp.Regexp
	rejectMethods []*regexp.Regexp
	crossOrigin   *http.CrossOriginProtection
}

func newFilter(opts FilterOptions) (*filter, error) {
	f := &filter{disabled: opts.Disabled, readOnly: opts.ReadOnly, crossOrigin: http.NewCrossOriginProtection()}
	for _, list := range []struct {
		flag, value, fallback string
		into                  *[]*regexp.Regexp
	}{
		{"accept-hosts", opts.AcceptHosts, DefaultAcceptHosts, &f.acceptHosts},
		{"accept-paths", opts.AcceptPaths, DefaultAcceptPaths, &f.acceptPaths},
		{"reject-paths", opts.RejectPaths, DefaultRejectPaths, &f.rejectPaths},
		{"reject-methods", opts.RejectMethods, DefaultRejectMethods, &f.rejectMethods},
	} {
		value := list.value
		if value == "" {
			value = list.fallback
		}
		if value == "" {
			continue
		}
		for expr := range strings.SplitSeq(value, ",") {
			if list.into == &f.acceptHosts {
				expr = "(?i)" + expr // as host names are
			}
			re, err := regexp.Compile(expr)
			if err != nil {
				return nil, fmt.Errorf("--%s: %w", list.flag, err)
			}
			*list.into = append(*list.into, re)
		}
	}
	return f, nil
}

// checkOrigin refuses requests that a browser sends for a page of another origin, or
// of a host name under DNS rebinding. It applies to every path.
func (f *filter) checkOrigin(r *http.Request) *metav1.Status {
	if !f.disabled && !acceptsHost(f.acceptHosts, r.Host) {
		return status.Forbidden(fmt.Sprintf("host %q is not accepted: see --accept-hosts", r.Host))
	}
	if err := f.crossOrigin.Check(r); err != nil {
		return status.Forbidden("cross-origin requests may not change anything: " + err.Error())
	}
	// CORS does not keep a browser from opening a WebSocket, or from sending a GET whose
	// answer it then hides from the page.
	if (request.IsUpgrade(r) || request.IsInteractive(r.URL.Path)) && request.IsForeign(r) {
		return status.Forbidden("cross-origin upgrades, exec, attach and port-forward are refused")
	}
	return nil
}

// checkRead refuses reads of the API that a browser makes for a page of another origin.
// The page could not see the answer, but the gateway would list the resource, and a
// Pod's server would have a request with the gateway's credentials.
func (f *filter) checkRead(r *http.Request) *metav1.Status {
	if !request.IsSafe(r.Method) || !request.IsForeign(r) {
		return nil
	}
	return status.Forbidden("a page of another origin may not read the API, nor link to it: to see the answer, enter the address in the browser")
}

// checkMethod refuses the methods of writes if the gateway is read-only. Methods are
// case-sensitive, and no header or parameter replaces one.
func (f *filter) checkMethod(r *http.Request) *metav1.Status {
	if !f.readOnly || request.IsSafe(r.Method) || selfreview.Of(r) != selfreview.None {
		return nil
	}
	return readOnly(r, "")
}

// checkReadOnly refuses what could change the cluster if the gateway is read-only.
func (f *filter) checkReadOnly(r *http.Request) *metav1.Status {
	if !f.readOnly {
		return nil
	}
	clean := path.Clean(r.URL.Path)
	switch {
	case f.checkMethod(r) != nil:
		return readOnly(r, "")
	case clean != r.URL.Path && clean+"/" != r.URL.Path:
		// The upstream or a proxy before it may read another path in it.
		return readOnly(r, ": its path has empty parts or dots")
	case request.Connects(request.Subresource(clean)), upgradesOther(r):
		return readOnly(r, ": it opens a connection to something in the cluster")
	}
	return nil
}

func readOnly(r *http.Request, why string) *metav1.Status {
	return status.Forbidden(fmt.Sprintf("the gateway is read-only (--read-only): %s %s is refused%s", r.Method, r.URL.Path, why))
}

// checkAPI applies the path and method rules to a request for the API.
func (f *filter) checkAPI(r *http.Request) *metav1.Status {
	if refusal := f.checkReadOnly(r); refusal != nil {
		return refusal
	}
	if f.disabled {
		return nil
	}
	// The upstream or a proxy before it may clean "//" and "..", so a path has to pass
	// both as sent and cleaned.
	// The deprecated /api/v1/watch/pods is another path of /api/v1/pods.
	sent, cleaned := r.URL.Path, path.Clean(r.URL.Path)
	switch {
	case matchAny(f.rejectPaths, sent), matchAny(f.rejectPaths, cleaned), matchAny(f.rejectPaths, watchPath.ReplaceAllString(cleaned, "$1/")):
		return status.Forbidden(fmt.Sprintf("path %q is rejected by --reject-paths", sent))
	case matchAny(f.rejectMethods, r.Method):
		return status.Forbidden(fmt.Sprintf("method %q is rejected by --reject-methods", r.Method))
	case !matchAny(f.acceptPaths, sent) || !matchAny(f.acceptPaths, cleaned) && !matchAny(f.acceptPaths, cleaned+"/"):
		return status.Forbidden(fmt.Sprintf("path %q is not accepted by --accept-paths", sent))
	}
	return nil
}

// watchPath matches the beginning of a deprecated path of a watch.
var watchPath = regexp.MustCompile(`^(/api/[^/]+|/apis/[^/]+/[^/]+)/watch/`)

// acceptsHost matches a Host header without its port. An IPv6 address is
// tried with brackets and without: the default list has them, and kubectl
// proxy, which loses them with the port, refuses its own "[::1]:8001".
func acceptsHost(accepted []*regexp.Regexp, header string) bool {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = header
	}
	if matchAny(accepted, host) {
		return true
	}
	return strings.Contains(host, ":") && matchAny(accepted, "["+strings.Trim(host, "[]")+"]")
}

func matchAny(res []*regexp.Regexp, s string) bool {
	for _, re := range res {
		if re.MatchString(s) {
			return true
		}
	}
	return false
}
