// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"net/url"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var versionRules = rules("§2",
	MatchWithoutVersion, MatchWithContinue, MatchUnknown, MatchExactZero, InitialEventsOnList,
	InitialEventsWithoutMatch, MatchOnWatch, SeveralMistakes, MistakesInOtherEncodings,
	MalformedVersionOfList, MalformedVersionOfGet, MalformedVersionOfWatch, UnusualVersions,
)

// invalid is a 422 about a parameter, of lists and watches of built-in and
// custom resources.
func (e *Env) invalid(ctx context.Context, query, message string) error {
	const prefix = `ListOptions.meta.k8s.io "" is invalid: `
	details := has(`"details":{"group":"meta.k8s.io","kind":"ListOptions","causes":[{`)
	return errors.Join(
		e.same(ctx, configMaps+"?"+query, status(422, "Invalid", prefix+message), details),
		e.same(ctx, gadgets+"?"+query, status(422, "Invalid", prefix+message), details),
		e.same(ctx, "/api/v1/nodes?"+query, status(422, "Invalid", prefix+message), details),
	)
}

// MatchWithoutVersion: §2, LIST with a match and without an RV.
func MatchWithoutVersion(ctx context.Context, e *Env) error {
	return e.invalid(ctx, "resourceVersionMatch=Exact",
		"resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")
}

// MatchWithContinue: §2, LIST with a match and a continue token.
func MatchWithContinue(ctx context.Context, e *Env) error {
	return e.invalid(ctx, "resourceVersion=1&resourceVersionMatch=NotOlderThan&continue=x",
		"resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided")
}

// MatchUnknown: §2, LIST with another match.
func MatchUnknown(ctx context.Context, e *Env) error {
	return e.invalid(ctx, "resourceVersion=1&resourceVersionMatch=Foo",
		`resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""`)
}

// MatchExactZero: §2, LIST at exactly RV 0.
func MatchExactZero(ctx context.Context, e *Env) error {
	return e.invalid(ctx, "resourceVersion=0&resourceVersionMatch=Exact",
		`resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`)
}

// InitialEventsOnList: §2, LIST with sendInitialEvents, be it true or false.
func InitialEventsOnList(ctx context.Context, e *Env) error {
	const message = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
	return errors.Join(e.invalid(ctx, "sendInitialEvents=true", message), e.invalid(ctx, "sendInitialEvents=false", message))
}

// InitialEventsWithoutMatch: §2, WATCH with sendInitialEvents needs
// NotOlderThan.
func InitialEventsWithoutMatch(ctx context.Context, e *Env) error {
	const message = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
	return errors.Join(
		e.invalid(ctx, "watch=1&sendInitialEvents=true", message),
		e.invalid(ctx, "watch=1&sendInitialEvents=false", message),
		e.invalid(ctx, "watch=1&sendInitialEvents=false&resourceVersion=0", message),
	)
}

// MatchOnWatch: §2, WATCH takes a match only with sendInitialEvents.
func MatchOnWatch(ctx context.Context, e *Env) error {
	return e.invalid(ctx, "watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan",
		"resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
}

// SeveralMistakes: §2, several are told in brackets.
func SeveralMistakes(ctx context.Context, e *Env) error {
	return errors.Join(
		e.invalid(ctx, "resourceVersionMatch=Foo&continue=x", "[resourceVersionMatch: Forbidden: …"),
		e.invalid(ctx, "resourceVersionMatch=Exact&sendInitialEvents=true", "[resourceVersionMatch: Forbidden: …"),
		e.invalid(ctx, "watch=1&resourceVersion=1&sendInitialEvents=true&resourceVersionMatch=Foo", "[resourceVersionMatch: Forbidden: …"),
	)
}

// MistakesInOtherEncodings: §2 and §8, a mistake is told in the encoding that
// was asked for.
func MistakesInOtherEncodings(ctx context.Context, e *Env) error {
	var errs []error
	for _, media := range []string{compare.YAML, compare.Protobuf, tableV1, metadataList} {
		errs = append(errs,
			e.same(ctx, configMaps+"?resourceVersionMatch=Exact", accept(media), code(422)),
			e.same(ctx, configMaps+"?resourceVersion=abc", accept(media), code(400)),
			e.same(ctx, configMaps+"?limit=abc", accept(media), code(400)))
	}
	return errors.Join(errs...)
}

// MalformedVersionOfList: §2, LIST with an RV that is no number is 400.
func MalformedVersionOfList(ctx context.Context, e *Env) error {
	var errs []error
	for value, why := range malformed {
		message := `invalid resource version: resourceVersion: Invalid value: "` + value + `": strconv.ParseUint: parsing "` + value + `": ` + why
		for _, path := range []string{configMaps, gadgets, "/api/v1/nodes"} {
			errs = append(errs, e.same(ctx, path+"?resourceVersion="+url.QueryEscape(value), status(400, "BadRequest", message)))
		}
	}
	return errors.Join(errs...)
}

var malformed = map[string]string{
	"abc": "invalid syntax", "-1": "invalid syntax", "1.5": "invalid syntax", "+1": "invalid syntax", " 1": "invalid syntax",
	"0x10": "invalid syntax", "1_000": "invalid syntax", "18446744073709551616": "value out of range",
}

// MalformedVersionOfGet: §2, GET with an RV that is no number is 500, without a
// reason.
func MalformedVersionOfGet(ctx context.Context, e *Env) error {
	return e.malformed500(ctx, configMaps+"/cm-1?", gadgets+"/g-1?")
}

// MalformedVersionOfWatch: §2, so is WATCH.
func MalformedVersionOfWatch(ctx context.Context, e *Env) error {
	return e.malformed500(ctx, configMaps+"?watch=1&", gadgets+"?watch=1&", beacons+"?watch=1&allowWatchBookmarks=1&")
}

func (e *Env) malformed500(ctx context.Context, paths ...string) error {
	var errs []error
	for value, why := range malformed {
		message := `resourceVersion: Invalid value: "` + value + `": strconv.ParseUint: parsing "` + value + `": ` + why
		for _, path := range paths {
			errs = append(errs, e.same(ctx, path+"resourceVersion="+url.QueryEscape(value), status(500, "", message)))
		}
	}
	return errors.Join(errs...)
}

// UnusualVersions: §2, an RV is any uint64, with zeros in front or not.
func UnusualVersions(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, beacons, 0)
	if err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, beacons+"?resourceVersion=00", mask(compare.ListRV), items("north", "south")),
		e.same(ctx, beacons+"/north?resourceVersion=00"+rv, kind("Beacon")),
		e.same(ctx, beacons+"?watch=1&timeoutSeconds=1&resourceVersion=00"+rv, events()),
		e.same(ctx, beacons+"?watch=1&timeoutSeconds=1&resourceVersion=00", code(200)),
		e.same(ctx, beacons+"?resourceVersion=0"+rv+"&resourceVersionMatch=Exact", items("north", "south")),
		e.same(ctx, beacons+"?watch=1&timeoutSeconds=1&resourceVersion=9223372036854775807", code(200)),
	)
}
