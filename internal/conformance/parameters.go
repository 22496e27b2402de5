// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var parameterRules = rules("§2",
	UnknownParameters, FirstValueWins, Booleans, LabelSelectors, LabelSelectorSyntax,
	FieldSelectorOperators, FieldSelectorSyntax, LimitOfAnySize, LimitAndContinueOnWatch,
	TimeoutSecondsOnList, TimeoutSecondsOfAnySize, TimeoutSyntax, TimeoutOnWatch, TimeoutPasses, BadNumbers,
	PrettyByParameter, PrettyByAgent, PrettyNeverOnWatch,
	IncludeObjectValues, ShardSelectorIgnored, ExportRefused,
)

// UnknownParameters: §2, they are ignored, and so is the case of known ones:
// it must be right.
func UnknownParameters(ctx context.Context, e *Env) error {
	const query = "&x=y&foo=&LIMIT=1&Limit=1&fieldselector=metadata.name%3Dcm-1&resourceversion=abc&%00=1&gracePeriodSeconds=abc"
	return errors.Join(
		e.same(ctx, configMaps+anyVersion+query, mask(compare.ListRV), items(still...)),
		e.same(ctx, configMaps+"/cm-1"+anyVersion+query, kind("ConfigMap")),
		e.replay(ctx, configMaps+"?watch=1"+query, events(added(still...)...)),
	)
}

// FirstValueWins: §2, of a parameter that is given twice.
func FirstValueWins(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, configMaps+"?resourceVersion="+rv+"&resourceVersion=abc&resourceVersionMatch=Exact&limit=2&limit=1&limit=x", items("cm-1", "cm-2")),
		e.same(ctx, configMaps+anyVersion+"&resourceVersion=abc&watch=false&watch=true", mask(compare.ListRV), items(still...)),
		e.same(ctx, configMaps+anyVersion+"&watch=true&watch=false&timeoutSeconds=1&timeoutSeconds=60&fieldSelector=metadata.name=cm-1&fieldSelector=metadata.name=cm-2", events("ADDED cm-1")),
		e.same(ctx, configMaps+anyVersion+"&labelSelector=color=green&labelSelector=color=red", mask(compare.ListRV), items("cm-5")),
		e.same(ctx, configMaps+"/cm-1"+anyVersion+"&resourceVersion=abc", kind("ConfigMap")),
		e.same(ctx, configMaps+"?resourceVersion=abc&resourceVersion=0", status(400, "BadRequest", "invalid resource version: …")),
	)
}

// Booleans: §2, allowWatchBookmarks and sendInitialEvents are true with any
// value but 0 and false, and with none.
func Booleans(ctx context.Context, e *Env) error {
	const path = configMaps + "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=cm-1&resourceVersion=0&"
	var errs []error
	for _, value := range []string{"allowWatchBookmarks", "allowWatchBookmarks=", "allowWatchBookmarks=1", "allowWatchBookmarks=TRUE", "allowWatchBookmarks=maybe"} {
		errs = append(errs, e.endBookmark(ctx, path+value, true))
	}
	for _, value := range []string{"allowWatchBookmarks=0", "allowWatchBookmarks=False", "allowWatchbookmarks=true"} {
		errs = append(errs, e.same(ctx, path+value, events("ADDED cm-1")))
	}
	const initial = path + "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents"
	for _, value := range []string{"", "=", "=1", "=Yes"} {
		errs = append(errs, e.endBookmark(ctx, initial+value, true))
	}
	for _, value := range []string{"=0", "=FALSE"} {
		errs = append(errs, e.endBookmark(ctx, initial+value, false))
	}
	return errors.Join(errs...)
}

// LabelSelectors: §2, every operator there is.
func LabelSelectors(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	var errs []error
	for selector, want := range map[string][]string{
		"color":                           {"cm-1", "cm-2", "cm-3", "cm-5"},
		"!color":                          {"cm-4", "kube-root-ca.crt"},
		"color=red":                       {"cm-1", "cm-3"},
		"color==red":                      {"cm-1", "cm-3"},
		"color!=red":                      {"cm-2", "cm-4", "cm-5", "kube-root-ca.crt"},
		"color in (red,blue)":             {"cm-1", "cm-2", "cm-3"},
		"color notin (red, blue)":         {"cm-4", "cm-5", "kube-root-ca.crt"},
		"color=red,size=3":                {"cm-3"},
		"size>1":                          {"cm-2", "cm-3"},
		"size<2":                          {"cm-1"},
		" color = red , ! nothing ":       {"cm-1", "cm-3"},
		"color=":                          {},
		"color in ()":                     {},
		"color in (,red)":                 {"cm-1", "cm-3"},
		"":                                still,
		"color,color!=blue,size in (1,3)": {"cm-1", "cm-3"},
		"example.com/none":                {},
	} {
		query := "labelSelector=" + url.QueryEscape(selector)
		errs = append(errs, e.same(ctx, configMaps+"?"+exactly(rv)+"&"+query, items(want...)))
	}
	return errors.Join(append(errs, e.replay(ctx, configMaps+"?watch=1&labelSelector=size%3E1", events("ADDED cm-2", "ADDED cm-3")))...)
}

// LabelSelectorSyntax: §2, mistakes in it are 400, of a watch as well.
func LabelSelectorSyntax(ctx context.Context, e *Env) error {
	var errs []error
	for _, selector := range []string{"=", "a b", "color in", "color in (", "!", "a,,b", "a>b", "-a", "a=" + strings.Repeat("x", 64), "a=b c", "a/b/c", "ä"} {
		query := anyVersion + "&labelSelector=" + url.QueryEscape(selector)
		errs = append(errs,
			e.same(ctx, configMaps+query, status(400, "BadRequest", "…")),
			e.same(ctx, configMaps+query+"&watch=1&timeoutSeconds=1", status(400, "BadRequest", "…")))
	}
	return errors.Join(append(errs, e.same(ctx, gadgets+anyVersion+"&labelSelector=a%20b", status(400, "BadRequest", "…")))...)
}

// FieldSelectorOperators: §2, =, == and != joined by commas; a field that is
// not there is "".
func FieldSelectorOperators(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, pods, 0)
	if err != nil {
		return err
	}
	var errs []error
	for selector, want := range map[string][]string{
		"spec.nodeName=node-1":  {"host"},
		"spec.nodeName==node-1": {"host"},
		"spec.nodeName!=node-1,metadata.name!=plain,status.phase!=Pending": {"ready"},
		"spec.nodeName=,status.phase=Succeeded":                            {"ready"},
		"status.podIP=,metadata.name=plain":                                {"plain"},
		"status.phase=Pending,metadata.name=plain":                         {"plain"},
		"metadata.name=plain,metadata.name!=plain":                         {},
		`metadata.name=pl\ain`:                                             nil,
		"":                                                                 nil,
	} {
		options := []option{code(200)}
		if want != nil {
			options = append(options, items(want...))
		} else if selector != "" {
			options = []option{code(400)}
		}
		errs = append(errs, e.same(ctx, pods+"?"+exactly(rv)+"&fieldSelector="+url.QueryEscape(selector), options...))
	}
	return errors.Join(errs...)
}

// FieldSelectorSyntax: §2, mistakes in it are 400, of a watch as well.
func FieldSelectorSyntax(ctx context.Context, e *Env) error {
	var errs []error
	for selector, message := range map[string]string{
		"metadata.name":           "…",
		"=x":                      "…",
		"metadata.name>x":         "…",
		"metadata.name in (a)":    "…",
		"spec.bogus=x":            "…",
		"metadata.name=x,bogus=y": "…",
		"metadata.labels.a=b":     "…",
		`metadata.name=a\x`:       "…",
	} {
		query := anyVersion + "&fieldSelector=" + url.QueryEscape(selector)
		errs = append(errs,
			e.same(ctx, configMaps+query, status(400, "BadRequest", message)),
			e.same(ctx, gadgets+query, status(400, "BadRequest", message)),
			e.same(ctx, configMaps+query+"&watch=1&timeoutSeconds=1", status(400, "BadRequest", message)))
	}
	return errors.Join(errs...)
}

// LimitOfAnySize: §2, what is not positive is no limit.
func LimitOfAnySize(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	exact := configMaps + "?" + exactly(rv) + "&limit="
	return errors.Join(
		e.same(ctx, exact+"0", items(still...)),
		e.same(ctx, exact+"-1", items(still...)),
		e.same(ctx, exact+"-9223372036854775808", items(still...)),
		e.same(ctx, exact, status(400, "BadRequest", `strconv.ParseInt: parsing "": invalid syntax`)),
		e.same(ctx, exact+"9223372036854775807", items(still...), hasNot(`"continue"`)),
		e.same(ctx, exact+"6", items(still...), hasNot(`"continue"`)),
		e.same(ctx, exact+"%2B2", items("cm-1", "cm-2")),
		e.same(ctx, exact+"007", items(still...)),
	)
}

// LimitAndContinueOnWatch: §2, a watch ignores both, except that it does not
// take continue where it is, or is made, one with initial events.
func LimitAndContinueOnWatch(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	const message = `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided`
	return errors.Join(
		e.replay(ctx, configMaps+"?watch=1&limit=1", events(added(still...)...)),
		e.live(ctx, p, "limit=1&continue=garbage&resourceVersion="+p.rv, []step{{http.MethodDelete, p.path + "/a", ""}}, "DELETED a"),
		e.same(ctx, configMaps+anyVersion+"&watch=1&continue=garbage", status(422, "Invalid", message)),
		e.same(ctx, configMaps+anyVersion+"&watch=1&continue=garbage"+initialEvents, status(422, "Invalid", message)),
		e.same(ctx, configMaps+"?watch=1&limit=1&continue=garbage", status(422, "Invalid", message)),
	)
}

// TimeoutSecondsOnList: §2, a list ignores timeoutSeconds.
func TimeoutSecondsOnList(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+anyVersion+"&timeoutSeconds=1", mask(compare.ListRV), items(still...)),
		e.same(ctx, configMaps+anyVersion+"&timeoutSeconds=-1", mask(compare.ListRV), items(still...)),
		e.same(ctx, configMaps+"/cm-1"+anyVersion+"&timeoutSeconds=abc", kind("ConfigMap")),
	)
}

// TimeoutSecondsOfAnySize: §2, a watch with a negative duration, or one that
// overflows, ends at once and cleanly.
func TimeoutSecondsOfAnySize(ctx context.Context, e *Env) error {
	const path = beacons + "?watch=1&resourceVersion=0&timeoutSeconds="
	return errors.Join(
		e.same(ctx, path+"-1", code(200), contentType(compare.JSON), mask(nothing)),
		e.same(ctx, path+"9223372036854775807", code(200), mask(nothing)),
	)
}

// nothing takes out all of a body: how much of its initial state a watch sends
// that is over before it begins is a matter of chance.
func nothing([]byte) []byte { return nil }

// TimeoutSyntax: §2, timeout is a Go duration, and at most a minute counts.
func TimeoutSyntax(ctx context.Context, e *Env) error {
	var errs []error
	for _, value := range []string{"abc", "10", "1d", "5%20s"} {
		const message = "invalid timeout specified in the request URL - time: …"
		errs = append(errs,
			e.same(ctx, configMaps+anyVersion+"&timeout="+value, status(400, "BadRequest", message)),
			e.same(ctx, configMaps+"/cm-1"+anyVersion+"&timeout="+value, status(400, "BadRequest", message)))
	}
	for _, value := range []string{"", "10s", "1h", "1.5m", "0", "0s"} {
		errs = append(errs,
			e.same(ctx, configMaps+anyVersion+"&timeout="+value, mask(compare.ListRV), items(still...)),
			e.same(ctx, configMaps+"/cm-1"+anyVersion+"&timeout="+value, kind("ConfigMap")))
	}
	return errors.Join(errs...)
}

// TimeoutOnWatch: §2, a watch ignores timeout.
func TimeoutOnWatch(ctx context.Context, e *Env) error {
	return errors.Join(
		e.replay(ctx, beacons+"?watch=1&timeout=abc", events("ADDED north", "ADDED south")),
		e.replay(ctx, beacons+"?watch=1&timeout=1ns", events("ADDED north", "ADDED south")),
		e.replay(ctx, custom+"watch/beacons?timeout=abc", events("ADDED north", "ADDED south")),
	)
}

// TimeoutPasses: §2 and §8, a list that has to wait longer than its timeout is
// answered 504, with a Status that lacks kind and apiVersion.
func TimeoutPasses(ctx context.Context, e *Env) error {
	return e.same(ctx, configMaps+"?resourceVersion="+future+"&timeout=1s", code(504), contentType("text/plain; charset=utf-8"),
		has(`{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}`))
}

// BadNumbers: §2, a limit or a duration that is no number is 400.
func BadNumbers(ctx context.Context, e *Env) error {
	var errs []error
	for value, message := range map[string]string{
		"abc":                  `strconv.ParseInt: parsing "abc": invalid syntax`,
		"1.5":                  `strconv.ParseInt: parsing "1.5": invalid syntax`,
		"99999999999999999999": `strconv.ParseInt: parsing "99999999999999999999": value out of range`,
		"%201":                 `strconv.ParseInt: parsing " 1": invalid syntax`,
	} {
		for _, parameter := range []string{"limit", "timeoutSeconds"} {
			query := anyVersion + "&" + parameter + "=" + value
			errs = append(errs,
				e.same(ctx, configMaps+query, status(400, "BadRequest", message)),
				e.same(ctx, gadgets+query, status(400, "BadRequest", message)),
				e.same(ctx, configMaps+query+"&watch=true", status(400, "BadRequest", message)))
		}
	}
	return errors.Join(errs...)
}

// PrettyByParameter: §2, pretty indents JSON, without a newline behind it;
// YAML is not affected.
func PrettyByParameter(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	if _, err := e.at(ctx, gadgets, 0); err != nil {
		return err
	}
	exact := "?" + exactly(rv)
	var errs []error
	for _, value := range []string{"pretty=true", "pretty=1", "pretty=t", "pretty=T"} {
		errs = append(errs,
			e.same(ctx, configMaps+exact+"&"+value, indented, code(200)),
			e.same(ctx, configMaps+"/cm-1"+anyVersion+"&"+value, indented, code(200)),
			e.same(ctx, gadgets+"/g-2"+anyVersion+"&"+value, indented, code(200)),
			e.same(ctx, configMaps+"/no-such"+anyVersion+"&"+value, indented, code(404)),
			e.same(ctx, configMaps+anyVersion+"&limit=x&"+value, indented, code(400)))
	}
	for _, value := range []string{"pretty", "pretty=", "pretty=false", "pretty=0", "pretty=yes", "PRETTY=1"} {
		errs = append(errs,
			e.same(ctx, configMaps+exact+"&"+value, code(200), hasNot("\n ")),
			e.same(ctx, configMaps+"/cm-1"+anyVersion+"&"+value, code(200), hasNot("\n ")),
			e.same(ctx, configMaps+"/no-such"+anyVersion+"&"+value, code(404), hasNot("\n ")))
	}
	for _, view := range []string{metadataList, tableV1} {
		errs = append(errs, e.same(ctx, configMaps+exact+"&pretty=1", accept(view), indented, ageing))
	}
	errs = append(errs,
		e.same(ctx, configMaps+exact+"&pretty=1", accept(compare.YAML), contentType(compare.YAML)),
		e.same(ctx, configMaps+exact+"&pretty=1", accept(compare.Protobuf), contentType(compare.Protobuf)))
	return errors.Join(errs...)
}

var indented = check(func(a *compare.Answer) error {
	if !strings.HasPrefix(a.Text(), "{\n  \"") || !strings.HasSuffix(a.Text(), "\n}") {
		return errors.New("not indented, or with a newline at the end")
	}
	return nil
})

// PrettyByAgent: §2, tools that people read get it indented unless they say
// otherwise.
func PrettyByAgent(ctx context.Context, e *Env) error {
	const path = configMaps + "/cm-1" + anyVersion
	var errs []error
	for _, agent := range []string{"curl/8.5.0", "Wget/1.21", "Mozilla/5.0 (X11)", "curl", "Mozilla/5.0"} {
		errs = append(errs,
			e.same(ctx, path, header("User-Agent", agent), indented),
			e.same(ctx, path+"&pretty=", header("User-Agent", agent), code(200)),
			e.same(ctx, configMaps+anyVersion, header("User-Agent", agent), indented, mask(compare.ListRV)),
			e.same(ctx, path+"&pretty=false", header("User-Agent", agent), hasNot("\n ")),
			e.same(ctx, path+"&pretty=0", header("User-Agent", agent), hasNot("\n ")))
	}
	for _, agent := range []string{"kubectl/v1.36.3", "Mozilla/4.0", "wget/1.21", "my curl", "Curl/8"} {
		errs = append(errs, e.same(ctx, path, header("User-Agent", agent), hasNot("\n ")))
	}
	return errors.Join(errs...)
}

// PrettyNeverOnWatch: §2, a watch has one line per event, always.
func PrettyNeverOnWatch(ctx context.Context, e *Env) error {
	return errors.Join(
		e.replay(ctx, configMaps+"?watch=1&pretty=true", events(added(still...)...), hasNot("\n ")),
		e.replay(ctx, configMaps+"?watch=1", header("User-Agent", "curl/8"), events(added(still...)...), hasNot("\n ")),
	)
}

// IncludeObjectValues: §2, a Table takes Metadata, Object and None; anything
// else is 400. Without a Table it means nothing.
func IncludeObjectValues(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	exact := configMaps + "?" + exactly(rv) + "&includeObject="
	return errors.Join(
		e.same(ctx, exact, accept(tableV1), ageing, has(`"object":{"kind":"PartialObjectMetadata"`)),
		e.same(ctx, exact+"Metadata", accept(tableV1), ageing, has(`"object":{"kind":"PartialObjectMetadata"`)),
		e.same(ctx, exact+"Object", accept(tableV1), ageing, has(`"object":{"kind":"ConfigMap"`)),
		e.same(ctx, exact+"None", accept(tableV1), ageing, has(`"object":null`)),
		e.same(ctx, exact+"Bogus", accept(tableV1), code(400)),
		e.same(ctx, exact+"none", accept(tableV1), code(400)),
		e.same(ctx, configMaps+anyVersion+"&includeObject=Bogus&watch=1&timeoutSeconds=1", accept(tableV1), code(400)),
		e.same(ctx, configMaps+"/cm-1"+anyVersion+"&includeObject=Bogus", accept(tableV1), code(400)),
		e.same(ctx, exact+"Bogus", items(still...)),
	)
}

// ShardSelectorIgnored: §2, shardSelector belongs to a feature that is off.
func ShardSelectorIgnored(ctx context.Context, e *Env) error {
	selector := "shardSelector=" + url.QueryEscape("shardRange(object.metadata.uid,'0x0','0x1')")
	return errors.Join(
		e.same(ctx, configMaps+anyVersion+"&"+selector, mask(compare.ListRV), items(still...)),
		e.same(ctx, configMaps+anyVersion+"&shardSelector=garbage", mask(compare.ListRV), items(still...)),
		e.replay(ctx, configMaps+"?watch=1&"+selector, events(added(still...)...)),
	)
}

// ExportRefused: §2, export is refused on a GET, and ignored on a list.
func ExportRefused(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+"/cm-1"+anyVersion+"&export=true", status(400, "BadRequest", "the export parameter, deprecated since v1.14, is no longer supported")),
		e.same(ctx, configMaps+"/cm-1"+anyVersion+"&export=false", kind("ConfigMap")),
		e.same(ctx, configMaps+anyVersion+"&export=true", mask(compare.ListRV), items(still...)),
	)
}
