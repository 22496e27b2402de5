// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var negotiationRules = rules("§5",
	AcceptJSON, AcceptYAML, AcceptProtobuf, ProtobufOfCustomResources, AcceptCBOR, AcceptWeights, AcceptOrder,
	AcceptStreamParameter, AcceptParameters, AcceptUnknown, AcceptWildcards, AcceptSeveralHeaders, AcceptOfClients,
	AcceptTable, AcceptMetadata, AcceptWrongShape, AcceptUnknownView,
)

// The views of the API.
const (
	tableV1              = "application/json;as=Table;g=meta.k8s.io;v=v1"
	tableV1beta1         = "application/json;as=Table;g=meta.k8s.io;v=v1beta1"
	tableYAML            = "application/yaml;as=Table;g=meta.k8s.io;v=v1"
	metadata             = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList         = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadataYAML         = "application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataListYAML     = "application/yaml;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadataProtobuf     = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataListProtobuf = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// A reading is what a LIST, a GET and a WATCH are answered: the Content-Type,
// or a status that is not 200 and the message, which ends in "…" if more may
// follow.
type reading struct{ list, get, watch string }

// refused stands for a 406 in a reading.
const refused = "406"

// negotiate asks for a list, an object, one that is not there and a watch of a
// collection.
func (e *Env) negotiate(ctx context.Context, path, name, media string, want reading) error {
	rv, err := e.at(ctx, path, 0)
	if err != nil {
		return err
	}
	ask := func(path, answer string, more ...option) error {
		if media != "" {
			more = append(more, accept(media))
		}
		if answer == refused {
			return e.same(ctx, path, append(more, code(406))...)
		}
		return e.same(ctx, path, append(more, ageing, code(200), contentType(answer), mask(compare.Bookmarks(answer)))...)
	}
	missing := []option{either(404, 406)}
	if media != "" {
		missing = append(missing, accept(media))
	}
	return errors.Join(
		ask(path+"?"+exactly(rv), want.list),
		ask(path+"/"+name+anyVersion, want.get),
		e.same(ctx, path+"/no-such"+anyVersion, missing...),
		ask(path+anyVersion+"&watch=1&timeoutSeconds=1", want.watch),
	)
}

// either is one of several statuses, for what the API server does one way or
// the other: then it only has to be the same.
func either(codes ...int) option {
	return check(func(a *compare.Answer) error {
		if !slices.Contains(codes, a.Code) {
			return fmt.Errorf("status %d, none of %v", a.Code, codes)
		}
		return nil
	})
}

// everywhere negotiates with a built-in and a custom resource.
func (e *Env) everywhere(ctx context.Context, want reading, medias ...string) error {
	var errs []error
	for _, media := range medias {
		errs = append(errs, e.negotiate(ctx, configMaps, "cm-1", media, want), e.negotiate(ctx, gadgets, "g-1", media, want))
	}
	return errors.Join(errs...)
}

var (
	inJSON     = reading{compare.JSON, compare.JSON, compare.JSON}
	inYAML     = reading{compare.YAML, compare.YAML, refused}
	inProtobuf = reading{compare.Protobuf, compare.Protobuf, compare.ProtobufWatch}
	inNothing  = reading{refused, refused, refused}
)

// AcceptJSON: §5, without an Accept, with */* and with JSON it is JSON, of a
// watch too.
func AcceptJSON(ctx context.Context, e *Env) error {
	return e.everywhere(ctx, inJSON, "", "*/*", "application/json", "application/json, */*", "application/json,text/html")
}

// AcceptYAML: §5, lists and objects are to be had in YAML; a watch is refused,
// also if something else would do.
func AcceptYAML(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, inYAML, compare.YAML, "application/yaml;charset=utf-8", "application/yaml,application/json", "application/yaml, */*"),
	)
}

// AcceptProtobuf: §5, what is built in is to be had in protobuf.
func AcceptProtobuf(ctx context.Context, e *Env) error {
	return errors.Join(
		e.negotiate(ctx, configMaps, "cm-1", compare.Protobuf, inProtobuf),
		e.negotiate(ctx, pods, "ready", compare.Protobuf, inProtobuf),
		e.negotiate(ctx, "/api/v1/nodes", "node-0", compare.Protobuf, inProtobuf),
		e.negotiate(ctx, configMaps, "cm-1", compare.Protobuf+", application/json", inProtobuf),
	)
}

// ProtobufOfCustomResources: §5, custom resources are not.
func ProtobufOfCustomResources(ctx context.Context, e *Env) error {
	return errors.Join(
		e.negotiate(ctx, gadgets, "g-1", compare.Protobuf, inNothing),
		e.negotiate(ctx, beacons, "north", compare.Protobuf, inNothing),
		e.negotiate(ctx, gadgets, "g-1", compare.Protobuf+",application/json", inJSON),
	)
}

// AcceptCBOR: §5, CBOR is behind a gate that is off.
func AcceptCBOR(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, inNothing, "application/cbor", "application/cbor-seq"),
		e.everywhere(ctx, inJSON, "application/cbor,application/json", "application/cbor-seq,application/json"),
	)
}

// AcceptWeights: §5, the heaviest clause that is acceptable counts.
func AcceptWeights(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, inJSON, "application/yaml;q=0.1,application/json;q=0.5", "application/json;q=0.1", "text/html,application/json;q=0.9,*/*;q=0.8"),
		e.everywhere(ctx, inYAML, "application/json;q=0.5,application/yaml", "application/yaml;q=0.9,application/json;q=0.8"),
		e.negotiate(ctx, configMaps, "cm-1", "application/json;q=0.8,application/vnd.kubernetes.protobuf;q=0.9", inProtobuf),
		e.negotiate(ctx, configMaps, "cm-1", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", inJSON),
		e.weighted(ctx, "application/json;q=0"),
		e.weighted(ctx, "application/json;q=0,application/yaml"),
		e.weighted(ctx, "application/json;q=abc"),
		e.weighted(ctx, "application/json;q=2,application/yaml;q=1.5"),
	)
}

// weighted only compares: what odd weights mean is for the API server to say.
func (e *Env) weighted(ctx context.Context, media string) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, configMaps+"?"+exactly(rv), accept(media), either(200, 406)),
		e.same(ctx, configMaps+"/cm-1"+anyVersion, accept(media), either(200, 406)),
		e.same(ctx, configMaps+anyVersion+"&watch=1&timeoutSeconds=1", accept(media), either(200, 406)),
	)
}

// AcceptOrder: §5, of equal weight the first that is acceptable counts, but
// what is specific before what is not.
func AcceptOrder(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, inJSON, "application/json,application/yaml", "application/json,application/vnd.kubernetes.protobuf", "text/plain,application/json", "*/*,application/json"),
		e.everywhere(ctx, inYAML, "application/yaml,application/json", "*/*,application/yaml"),
		e.negotiate(ctx, configMaps, "cm-1", "*/*, application/vnd.kubernetes.protobuf", inProtobuf),
	)
}

// AcceptStreamParameter: §5, stream=watch does no harm, any other stream
// rejects its clause; the answer in JSON never echoes it.
func AcceptStreamParameter(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, inJSON, "application/json;stream=watch"),
		e.everywhere(ctx, inNothing, "application/json;stream=foo", "application/json;stream=list"),
		e.everywhere(ctx, inJSON, "application/yaml;stream=foo,application/json"),
		e.negotiate(ctx, configMaps, "cm-1", "application/vnd.kubernetes.protobuf;stream=watch", inProtobuf),
		e.weighted(ctx, "application/json;stream="),
		e.weighted(ctx, "application/json;Stream=watch"),
	)
}

// AcceptParameters: §5, unknown parameters are ignored; those of a view without
// the view are not. Case matters.
func AcceptParameters(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, inJSON, "application/json;charset=utf-8", "application/json;foo=bar", "application/json; pretty=0"),
		e.everywhere(ctx, inNothing, "application/json;g=meta.k8s.io;v=v1", "Application/JSON"),
		e.weighted(ctx, "application/json;pretty=1"),
		e.weighted(ctx, "application/json;as="),
		e.weighted(ctx, "application/json;export=1"),
	)
}

// AcceptUnknown: §5, what is no media type of the API is 406, with a text that
// tells those there are.
func AcceptUnknown(ctx context.Context, e *Env) error {
	const text = "Available representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	var errs []error
	for _, media := range []string{"text/html", "foo", "text/*", "application/xml", "application/json2", ";", ",", "application/"} {
		for _, path := range []string{configMaps + anyVersion, configMaps + "/cm-1" + anyVersion, configMaps + anyVersion + "&watch=1&timeoutSeconds=1"} {
			options := []option{accept(media)}
			if strings.HasPrefix(media, "text") {
				options = append(options, code(406), has(text))
			}
			errs = append(errs, e.same(ctx, path, append(options, mask(compare.ListRV))...))
		}
		errs = append(errs, e.same(ctx, gadgets+"/g-1"+anyVersion, accept(media)))
	}
	const known = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	const stream = "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
	return errors.Join(append(errs,
		e.same(ctx, configMaps+anyVersion, accept("application/json;stream=foo"), status(406, "NotAcceptable", known), has("\n  ")),
		e.same(ctx, configMaps+anyVersion+"&watch=1", accept(compare.YAML), code(406), contentType(compare.YAML),
			check(func(a *compare.Answer) error {
				if !strings.Contains(strings.ReplaceAll(a.Text(), "\n ", ""), stream) {
					return errors.New("without the two forms of a watch")
				}
				return nil
			})),
		e.same(ctx, configMaps+"/no-such"+anyVersion, accept("text/html"), code(406)),
	)...)
}

// AcceptWildcards: §5, */* is anything; application/* is taken by what.
func AcceptWildcards(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, inJSON, "*/*", "*/*;q=0.1", "text/html, */*"),
		e.weighted(ctx, "application/*"),
		e.weighted(ctx, "application/*,application/json"),
		e.weighted(ctx, "*"),
		e.weighted(ctx, "*/json"),
	)
}

// AcceptSeveralHeaders: §5, an Accept that is sent twice.
func AcceptSeveralHeaders(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	path := configMaps + "?" + exactly(rv)
	return errors.Join(
		e.same(ctx, path, header("Accept", "application/yaml", "application/json"), code(200)),
		e.same(ctx, path, header("Accept", "text/html", "application/json"), either(200, 406)),
		e.same(ctx, path, header("Accept", ""), code(200), contentType(compare.JSON)),
	)
}

// AcceptOfClients: §5 and §7, what clients really send.
func AcceptOfClients(ctx context.Context, e *Env) error {
	const kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	const informer = metadataListProtobuf + "," + metadataList + ",application/json"
	return errors.Join(
		e.everywhere(ctx, inJSON, kubectl, "application/json, */*"),
		e.everywhere(ctx, inJSON, "application/json;as=Table;v=v1;g=meta.k8s.io"),
		e.negotiate(ctx, configMaps, "cm-1", "application/vnd.kubernetes.protobuf,application/json", inProtobuf),
		e.negotiate(ctx, gadgets, "g-1", "application/vnd.kubernetes.protobuf,application/json", inJSON),
		e.same(ctx, configMaps+anyVersion+"&fieldSelector="+url.QueryEscape("metadata.name=nothing"), accept(informer), contentType(compare.Protobuf), mask(anyList)),
	)
}

// anyList blanks the RV of an empty list in protobuf, in which nothing else is
// a number.
func anyList(body []byte) []byte { return blank(body, `\d+`) }

// AcceptTable: §5, Tables are in JSON or YAML, and watched in JSON.
func AcceptTable(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, inJSON, tableV1, tableV1beta1),
		e.everywhere(ctx, inYAML, tableYAML),
		e.everywhere(ctx, inNothing, "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1"),
		e.everywhere(ctx, inJSON, "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json"),
	)
}

// AcceptMetadata: §5, metadata only, of custom resources in protobuf as well.
func AcceptMetadata(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, reading{refused, compare.JSON, compare.JSON}, metadata),
		e.everywhere(ctx, reading{refused, compare.YAML, refused}, metadataYAML),
		e.everywhere(ctx, reading{refused, compare.Protobuf, compare.ProtobufWatch}, metadataProtobuf),
	)
}

// AcceptWrongShape: §5, PartialObjectMetadataList is for lists and
// PartialObjectMetadata for objects: the first clause that is acceptable counts,
// and the other way round is 406, or 500 for the list of a custom resource.
func AcceptWrongShape(ctx context.Context, e *Env) error {
	const ofList = "you requested PartialObjectMetadata, but the requested object is a list …"
	var errs []error
	for path, name := range map[string]string{configMaps: "cm-1", gadgets: "g-1"} {
		rv, err := e.at(ctx, path, 0)
		if err != nil {
			return err
		}
		exact := "?" + exactly(rv)
		errs = append(errs,
			e.same(ctx, path+anyVersion, accept(metadata), status(406, "NotAcceptable", ofList)),
			e.same(ctx, path+"/"+name+anyVersion, accept(metadataList), either(406, 500)),
			e.same(ctx, path+"/no-such"+anyVersion, accept(metadataList), code(404)),
			e.same(ctx, path+exact, accept(metadata+","+metadataList), code(406)),
			e.same(ctx, path+"/"+name+anyVersion, accept(metadataList+","+metadata), either(406, 500)),
			e.same(ctx, path+exact, accept(metadataList+","+metadata), kind("PartialObjectMetadataList")),
			e.same(ctx, path+"/"+name+anyVersion, accept(metadata+","+metadataList), kind("PartialObjectMetadata")),
			e.same(ctx, path+anyVersion+"&watch=1&timeoutSeconds=1", accept(metadataList), code(200)))
	}
	return errors.Join(append(errs,
		e.same(ctx, configMaps+"/cm-1"+anyVersion, accept(metadataList), status(406, "NotAcceptable", "you requested PartialObjectMetadataList, but the requested object is not a list …")),
		e.same(ctx, gadgets+"/g-1"+anyVersion, accept(metadataList), status(500, "", "content is not a list")),
	)...)
}

// AcceptUnknownView: §5, views that do not exist are not acceptable.
func AcceptUnknownView(ctx context.Context, e *Env) error {
	return errors.Join(
		e.everywhere(ctx, inNothing,
			"application/json;as=Bogus;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v2",
			"application/json;as=Table;g=example.com;v=v1", "application/json;as=Table", "application/json;as=table;g=meta.k8s.io;v=v1",
			"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v7"),
		e.everywhere(ctx, inJSON, "application/json;as=Bogus;g=meta.k8s.io;v=v1,application/json"),
	)
}
