// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A trial is a request of an identity and what came of it.
type trial struct {
	number   int
	identity *identity
	*request
	// direct is the API server's answer. An extension has none.
	direct, gateway answer
	// impersonated is set if the gateway may impersonate callers with certificates.
	impersonated bool
	// allowed is what reviews say about an extension, watched about those of a multiwatch.
	allowed bool
	watched []bool
	granted []string
}

func (t *trial) String() string {
	text := fmt.Sprintf("case %d: %s (%s, %s):\n  %s\n  the gateway: %s\n", t.number, t.identity.name, t.identity.kind, t.form, t.request, t.gateway)
	if t.form != now {
		return text + fmt.Sprintf("  allowed by reviews: %v %v %q", t.allowed, t.watched, t.granted)
	}
	return text + fmt.Sprintf("  the API server: %s", t.direct)
}

// impersonateFlag is what a Status names that refuses to a caller with a certificate what only the
// API server can answer.
const impersonateFlag = "--impersonate"

// judge returns what is wrong with the gateway's answer, "" if nothing is.
func (t *trial) judge() string {
	switch {
	case t.identity.kind == strangerCaller || t.identity.kind == nobodyCaller:
		return t.wantCode(http.StatusUnauthorized)
	case t.identity.kind == certImpersonator:
		// The gateway would need rights of its own to ask the API server.
		return t.wantCode(http.StatusForbidden)
	case t.form != now:
		return t.judgeExtension()
	case t.identity.kind == tokenCaller, t.impersonated:
		return t.judgeSame()
	default:
		return t.judgeCert()
	}
}

func (t *trial) wantCode(code int) string {
	if t.gateway.code != code {
		return fmt.Sprintf("want %d", code)
	}
	return ""
}

// judgeSame requires the API server's answer.
func (t *trial) judgeSame() string {
	switch {
	case t.gateway.code != t.direct.code:
		return "another code than the API server's"
	case t.gateway.code == http.StatusForbidden && t.gateway.message != t.direct.message:
		return "another reason than the API server's"
	case t.comparable && t.gateway.code == http.StatusOK && !slices.Equal(t.gateway.names, t.direct.names):
		return "other objects than the API server's"
	}
	return ""
}

// judgeCert is for a caller whose credentials the gateway cannot pass on, and whom it may
// not impersonate: it gets what
// the gateway can answer itself, and otherwise learns which flag is missing.
func (t *trial) judgeCert() string {
	named := t.gateway.code == http.StatusForbidden && (t.method == http.MethodHead || strings.Contains(t.gateway.message, impersonateFlag))
	switch {
	case t.direct.code == http.StatusForbidden:
		return t.wantCode(http.StatusForbidden)
	case t.gateway.code == http.StatusForbidden && !named:
		return "403 without " + impersonateFlag + " for what the API server allows"
	case !named && (t.sub != "" || t.method != http.MethodGet && t.method != http.MethodHead):
		return "an answer that only the API server can give"
	case named && t.read && t.direct.code == http.StatusOK && t.cached():
		return "the gateway refuses what it can answer"
	case named:
		return ""
	}
	return t.judgeSame()
}

// cached reports whether the gateway has to be able to answer the read. It has no proof of
// freshness of Events, and the API server answers Tables whose rows it does not know yet.
func (t *trial) cached() bool {
	return slices.Contains([]string{jsonType, "", protoType}, t.accept) &&
		(t.resource != "events" || strings.Contains(t.query, "resourceVersion=0"))
}

// judgeExtension requires what reviews say. An object may be absent.
func (t *trial) judgeExtension() string {
	switch {
	case t.identity.header.Get("Impersonate-User")+t.identity.header.Get("Impersonate-Group") != "":
		// Only the API server judges impersonation, and it does not know extensions.
		return t.wantCode(http.StatusForbidden)
	case t.form == multiwatch:
		return t.judgeWatches()
	case t.form == whereTo:
		if t.gateway.code == http.StatusOK && !slices.Equal(t.gateway.granted, t.granted) {
			return "other namespaces than reviews say"
		}
		return t.wantCode(http.StatusOK)
	case !t.allowed:
		return t.wantCode(http.StatusForbidden)
	case t.verb == "get" && t.gateway.code == http.StatusNotFound:
		return ""
	}
	return t.wantCode(http.StatusOK)
}

// judgeWatches requires what reviews say about each watch.
func (t *trial) judgeWatches() string {
	if t.gateway.code != http.StatusOK {
		return t.wantCode(http.StatusOK)
	}
	for i, allowed := range t.watched {
		want := http.StatusForbidden
		if allowed {
			want = http.StatusOK
		}
		if t.gateway.watches[i] != want {
			return fmt.Sprintf("want %d for watch %d", want, i)
		}
	}
	return ""
}

// TestJudge: the judge accepts right answers, and no others.
func TestJudge(t *testing.T) {
	read := &request{method: http.MethodGet, form: now, read: true, comparable: true, accept: jsonType, verb: "list", query: "resourceVersion=0"}
	events := &request{method: http.MethodGet, form: now, read: true, accept: jsonType, verb: "list", resource: "events"}
	write := &request{method: http.MethodPost, form: now, verb: "create"}
	head := &request{method: http.MethodHead, form: now, verb: "list"}
	get := &request{method: http.MethodGet, form: past, verb: "get"}
	fields := &request{method: http.MethodGet, form: projection, verb: "list"}
	both := &request{method: http.MethodGet, form: multiwatch, verb: "watch"}
	where := &request{method: http.MethodGet, form: whereTo, verb: "list"}
	reply := func(code int, message string, names ...string) answer {
		return answer{code: code, message: message, names: names}
	}
	for _, tt := range []struct {
		name            string
		kind            kind
		request         *request
		direct, gateway answer
		allowed, ok     bool
	}{
		{"the same list", tokenCaller, read, reply(200, "", "a"), reply(200, "", "a"), false, true},
		{"another list", tokenCaller, read, reply(200, "", "a"), reply(200, "", "a", "b"), false, false},
		{"the same refusal", tokenCaller, read, reply(403, "no"), reply(403, "no"), false, true},
		{"another reason", tokenCaller, read, reply(403, "no"), reply(403, "never"), false, false},
		{"allowed only by the gateway", tokenCaller, read, reply(403, "no"), reply(200, ""), false, false},
		{"denied only by the gateway", tokenCaller, read, reply(200, ""), reply(403, "no"), false, false},
		{"unauthorized only for the gateway", tokenCaller, write, reply(201, ""), reply(401, ""), false, false},
		{"a served certificate", certCaller, read, reply(200, "", "a"), reply(200, "", "a"), false, true},
		{"a refused certificate", certCaller, read, reply(200, ""), reply(403, "needs --impersonate"), false, false},
		{"a refused certificate, of Events", certCaller, events, reply(200, ""), reply(403, "needs --impersonate"), false, true},
		{"a denied certificate", certCaller, read, reply(403, "no"), reply(403, "because"), false, true},
		{"a certificate with the gateway's rights", certCaller, read, reply(403, "no"), reply(200, ""), false, false},
		{"a write of a certificate", certCaller, write, reply(201, ""), reply(403, "needs --impersonate"), false, true},
		{"a write of a certificate, refused without the flag", certCaller, write, reply(201, ""), reply(403, "no"), false, false},
		{"a write of a certificate as the gateway, allowed", certCaller, write, reply(201, ""), reply(201, ""), false, false},
		{"a write of a certificate as the gateway", certCaller, write, reply(403, "no"), reply(201, ""), false, false},
		{"HEAD of a certificate", certCaller, head, reply(405, ""), reply(403, ""), false, true},
		{"a stranger", strangerCaller, read, reply(401, ""), reply(401, ""), false, true},
		{"a stranger is served", strangerCaller, read, reply(401, ""), reply(200, ""), false, false},
		{"nobody", nobodyCaller, read, reply(403, ""), reply(401, ""), false, true},
		{"nobody is served", nobodyCaller, read, reply(200, ""), reply(200, ""), false, false},
		{"impersonation of a certificate", certImpersonator, read, reply(200, ""), reply(200, ""), false, false},
		{"the past", tokenCaller, get, answer{}, reply(200, ""), true, true},
		{"no object in the past", tokenCaller, get, answer{}, reply(404, ""), true, true},
		{"the past, denied", tokenCaller, get, answer{}, reply(403, ""), true, false},
		{"the past, allowed", certCaller, get, answer{}, reply(200, ""), false, false},
		{"the past, denied as an absent object", tokenCaller, get, answer{}, reply(404, ""), false, false},
		{"a projection, absent", tokenCaller, fields, answer{}, reply(404, ""), true, false},
		{"a multiwatch", tokenCaller, both, answer{}, answer{code: 200, watches: []int{200, 403}}, true, true},
		{"a multiwatch with one decision for both", tokenCaller, both, answer{}, answer{code: 200, watches: []int{200, 200}}, true, false},
		{"a multiwatch that is refused", certCaller, both, answer{}, answer{code: 200, watches: []int{403, 403}}, true, false},
		{"the namespaces", tokenCaller, where, answer{}, answer{code: 200, granted: []string{"a"}}, true, true},
		{"a namespace too many", tokenCaller, where, answer{}, answer{code: 200, granted: []string{"a", "b"}}, true, false},
		{"all namespaces", certCaller, where, answer{}, answer{code: 200, granted: []string{""}}, true, false},
		{"no namespace", certCaller, where, answer{}, answer{code: 200, granted: []string{}}, true, false},
		{"no answer about namespaces", tokenCaller, where, answer{}, reply(403, ""), true, false},
	} {
		trial := &trial{identity: &identity{kind: tt.kind}, request: tt.request, direct: tt.direct, gateway: tt.gateway, allowed: tt.allowed, watched: []bool{true, false}, granted: []string{"a"}}
		if wrong := trial.judge(); (wrong == "") != tt.ok {
			t.Errorf("%s: %q", tt.name, wrong)
		}
	}
}
