// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// maxURILength bounds the URI in an event. A long selector is a few kilobytes.
	maxURILength = 16 << 10
	// maxForwardedLength bounds the header X-Forwarded-For: of a longer one, the addresses
	// of the last proxies are kept.
	maxForwardedLength = 4 << 10
	// maxImpersonationLength bounds the headers of an impersonated user together.
	maxImpersonationLength = 16 << 10
	// maxAttributeLength is above that of all names that the API server accepts.
	maxAttributeLength = 1 << 10

	truncated = "...TRUNCATED" // kube-apiserver ends a long user agent so
	redacted  = "REDACTED"
)

// isLongRunning reports what kube-apiserver counts as long-running.
func isLongRunning(attrs authorizer.Attributes) bool {
	if !attrs.IsResourceRequest() {
		return strings.HasPrefix(attrs.GetPath(), "/debug/pprof/")
	}
	switch attrs.GetVerb() {
	case "watch", "proxy":
		return true
	}
	switch attrs.GetSubresource() {
	case "attach", "exec", "proxy", "log", "portforward":
		return true
	}
	return false
}

// isProxied reports whether a body comes from a Pod, a Service or a Node: it could
// claim any Status.
func isProxied(attrs authorizer.Attributes) bool {
	return attrs.IsResourceRequest() && (attrs.GetVerb() == "proxy" || attrs.GetSubresource() == "proxy")
}

// quotesSecrets reports whether an error of the API server could quote a Secret or a token
// that was sent.
func quotesSecrets(attrs authorizer.Attributes) bool {
	if !attrs.IsResourceRequest() {
		return false
	}
	switch attrs.GetResource() {
	case "secrets", "tokenreviews":
		return true
	}
	return attrs.GetSubresource() == "token"
}

// namesOnly reports whether the message of a failure has nothing of an object but names.
func namesOnly(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict:
		return true
	}
	return false
}

// recorded returns a request with what an event takes from it.
func recorded(r *http.Request) *http.Request {
	u := *r.URL
	u.RawQuery = redact(u.RawQuery)
	if len(u.RequestURI()) > maxURILength {
		u = url.URL{Opaque: u.RequestURI()[:maxURILength] + truncated}
	}
	header := r.Header
	forwarded := strings.Join(header["X-Forwarded-For"], ",")
	if len(forwarded) > maxForwardedLength {
		forwarded = forwarded[len(forwarded)-maxForwardedLength:]
		_, forwarded, _ = strings.Cut(forwarded, ",") // the first one may be a part of an address
		header = http.Header{"X-Forwarded-For": {forwarded}, "X-Real-Ip": header["X-Real-Ip"], "User-Agent": header["User-Agent"]}
	}
	return &http.Request{Method: r.Method, URL: &u, Header: header, RemoteAddr: r.RemoteAddr}
}

// redact replaces the values of parameters that are tokens, also in the query of a URL that
// is the value of a parameter, as in a multiwatch. It leaves the rest of a query as it was.
func redact(query string) string { return redactValues(query, true) }

// redactValues is redact, in URLs only if nested is set: a client could nest any number.
func redactValues(query string, nested bool) string {
	var b strings.Builder
	for rest := query; rest != ""; {
		pair := rest
		if end := strings.IndexAny(rest, "&;"); end >= 0 {
			pair = rest[:end+1]
		}
		rest = rest[len(pair):]
		name, value, ok := strings.Cut(pair, "=")
		end := ""
		if n := len(value); n > 0 && strings.Contains("&;", value[n-1:]) {
			value, end = value[:n-1], value[n-1:]
		}
		if ok && isToken(name) {
			b.WriteString(name + "=" + redacted + end)
		} else if url, ok := redactURL(value); ok && nested {
			b.WriteString(name + "=" + url + end)
		} else {
			b.WriteString(pair)
		}
	}
	return b.String()
}

// redactURL redacts the query of a URL that is the value of a parameter. It returns false if
// there is nothing to redact.
func redactURL(value string) (string, bool) {
	plain, err := url.QueryUnescape(value)
	at, query, ok := strings.Cut(plain, "?")
	if err != nil || !ok {
		return "", false
	}
	clean := redactValues(query, false)
	return url.QueryEscape(at + "?" + clean), clean != query
}

func isToken(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	switch strings.ToLower(name) {
	case "access_token", "id_token", "refresh_token", "token", "authorization":
		return true
	}
	return false
}

// bounded returns the attributes with values cut to lengths that fit into a log.
func bounded(attrs authorizer.Attributes) authorizer.Attributes {
	fits := true
	for _, value := range []string{attrs.GetVerb(), attrs.GetNamespace(), attrs.GetName(), attrs.GetResource(), attrs.GetSubresource(), attrs.GetAPIGroup(), attrs.GetAPIVersion()} {
		fits = fits && len(value) <= maxAttributeLength
	}
	if fits {
		return attrs
	}
	return authorizer.AttributesRecord{
		User: attrs.GetUser(), ResourceRequest: attrs.IsResourceRequest(),
		Verb: cut(attrs.GetVerb()), Namespace: cut(attrs.GetNamespace()), Name: cut(attrs.GetName()),
		Resource: cut(attrs.GetResource()), Subresource: cut(attrs.GetSubresource()),
		APIGroup: cut(attrs.GetAPIGroup()), APIVersion: cut(attrs.GetAPIVersion()),
	}
}

func cut(s string) string {
	if len(s) > maxAttributeLength {
		return s[:maxAttributeLength] + truncated
	}
	return s
}

// impersonated returns the user that the headers ask for, nil for none.
func impersonated(h http.Header) user.Info {
	var u user.DefaultInfo
	length, asked := 0, false
	for name, values := range h {
		if !strings.HasPrefix(name, "Impersonate-") {
			continue
		}
		for _, v := range values {
			length += len(name) + len(v)
		}
		switch name {
		case authenticationv1.ImpersonateUserHeader:
			u.Name = h.Get(name)
		case authenticationv1.ImpersonateUIDHeader:
			u.UID = h.Get(name)
		case authenticationv1.ImpersonateGroupHeader:
			u.Groups = slices.Clone(values)
		default:
			key, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
			if !ok {
				continue
			}
			key = strings.ToLower(key)
			if plain, err := url.PathUnescape(key); err == nil {
				key = plain
			}
			if u.Extra == nil {
				u.Extra = map[string][]string{}
			}
			u.Extra[key] = append(u.Extra[key], values...)
		}
		asked = true
	}
	switch {
	case !asked:
		return nil
	case length > maxImpersonationLength:
		return &user.DefaultInfo{Name: cut(u.Name), UID: cut(u.UID), Groups: []string{truncated}}
	}
	return &u
}
