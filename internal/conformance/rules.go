// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// A Rule is one thing that the API does.
type Rule struct {
	// Section is that of docs/kubernetes-watch.md, such as "§1".
	Section string
	// Check returns nil when both endpoints do it alike. Its comment says
	// what it is.
	Check func(context.Context, *Env) error
	// Differs is the number of the line in docs/semantics.md, "Differences
	// from the API server", that tells why the endpoints do not do it alike;
	// 0 when they do.
	Differs int
}

// Name is the name of the function.
func (r Rule) Name() string {
	name := runtime.FuncForPC(reflect.ValueOf(r.Check).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// Sections names the sections of docs/kubernetes-watch.md.
var Sections = []struct{ Number, Title string }{
	{"§1", "URLs and verbs"},
	{"§2", "query parameters"},
	{"§3", "expired and future versions"},
	{"§4", "events"},
	{"§5", "negotiation and wire format"},
	{"§6", "timeouts"},
	{"§7", "clients"},
	{"§8", "Status objects"},
	{"§9", "field selectors"},
}

// Rules returns all rules, in the order of docs/kubernetes-watch.md.
func Rules() []Rule {
	return slices.Concat(
		urlRules, parameterRules, versionRules, listRules, watchRules, expiredRules, eventRules, occasionRules, bookmarkRules,
		negotiationRules, viewRules, wireRules, webSocketRules, timeoutRules, clientRules, statusRules, fieldRules,
	)
}

func rules(section string, checks ...func(context.Context, *Env) error) []Rule {
	var out []Rule
	for _, check := range checks {
		out = append(out, Rule{Section: section, Check: check})
	}
	return out
}
