// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var wireRules = rules("§5",
	JSONOfBuiltIn, JSONOfCustom, JSONEscapes, JSONNewline, JSONOfEmptyLists, MetadataItemsSayTheirKind,
	ProtobufEnvelope, ProtobufList, ProtobufFrames, WatchFraming, WatchHeadersAtOnce, WatchEndsCleanly,
	GzipOfLargeLists, GzipTokens, GzipOfEncodings, GzipNeverOnWatch, CacheControl, Warnings, OtherVersions,
	OverHTTP2, FrameByFrame,
)

// matches is a body that a pattern matches from its beginning.
func matches(pattern string) option {
	return check(func(a *compare.Answer) error {
		if !regexp.MustCompile(`^` + pattern).Match(a.Body) {
			return fmt.Errorf("not like %s", pattern)
		}
		return nil
	})
}

// JSONOfBuiltIn: §5, kind, apiVersion and metadata come first; items of a list
// leave the first two out, objects and watches do not.
func JSONOfBuiltIn(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, pods, 0)
	if err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, pods+"?"+exactly(rv),
			matches(`\{"kind":"PodList","apiVersion":"v1","metadata":\{"resourceVersion":"`+rv+`"\},"items":\[\{"metadata":\{"name":"`), hasNot("selfLink")),
		e.same(ctx, pods+"/plain"+anyVersion, matches(`\{"kind":"Pod","apiVersion":"v1","metadata":\{"name":"plain","namespace":"conf","uid":`), hasNot("selfLink")),
		e.replay(ctx, pods+"?watch=1", matches(`\{"type":"ADDED","object":\{"kind":"Pod","apiVersion":"v1","metadata":\{"name":`)),
	)
}

// JSONOfCustom: §5, custom resources have all keys in alphabetical order, items
// have apiVersion and kind, and a list always has continue.
func JSONOfCustom(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, gadgets, 0)
	if err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, gadgets+"?"+exactly(rv),
			matches(`\{"apiVersion":"conformance.example.com/v1","items":\[\{"apiVersion":"conformance.example.com/v1","kind":"Gadget","metadata":\{"creationTimestamp":`),
			has(`],"kind":"GadgetList","metadata":{"continue":"","resourceVersion":"`+rv+`"}}`)),
		e.same(ctx, gadgets+"/g-2"+anyVersion, matches(`\{"apiVersion":"conformance.example.com/v1","kind":"Gadget","metadata":\{`)),
		e.replay(ctx, gadgets+"?watch=1", matches(`\{"type":"ADDED","object":\{"apiVersion":"conformance.example.com/v1","kind":"Gadget",`)),
	)
}

// JSONEscapes: §5, <, > and & are escaped, and so are the line separators of
// Unicode; other characters are not.
func JSONEscapes(ctx context.Context, e *Env) error {
	if _, err := e.at(ctx, configMaps, 0); err != nil {
		return err
	}
	escaped := []option{has(`\u003cb\u003e\u0026amp;\u003c/b\u003e 'é\u2028`), has(`"a":"\u003cscript\u003e"`), has(`"c":"\u2029"`)}
	return errors.Join(
		e.same(ctx, configMaps+"/cm-1"+anyVersion, escaped...),
		e.same(ctx, configMaps+"?resourceVersion=0", append(escaped, mask(compare.ListRV))...),
		e.replay(ctx, configMaps+"?watch=1", escaped...),
		e.same(ctx, configMaps+"/cm-1"+anyVersion+"&pretty=1", has(`"a": "\u003cscript\u003e"`)),
		e.same(ctx, gadgets+"/g-1"+anyVersion, has(`"\u003chtml\u003e":"\u0026"`)),
	)
}

// JSONNewline: §5, there is one newline behind each document.
func JSONNewline(ctx context.Context, e *Env) error {
	one := check(func(a *compare.Answer) error {
		if !strings.HasSuffix(a.Text(), "}\n") || bytes.Count(a.Body, []byte("\n")) != 1 {
			return errors.New("not one newline, at the end")
		}
		return nil
	})
	return errors.Join(
		e.same(ctx, configMaps+anyVersion, one, mask(compare.ListRV)),
		e.same(ctx, configMaps+"/cm-2"+anyVersion, one),
		e.same(ctx, gadgets+anyVersion, one, mask(compare.ListRV)),
		e.same(ctx, gadgets+"/g-1"+anyVersion, one),
		e.same(ctx, configMaps+"/no-such"+anyVersion, one),
		e.same(ctx, configMaps+anyVersion, accept(metadataList), one, mask(compare.ListRV)),
	)
}

// JSONOfEmptyLists: §5, an empty list has empty items, not null; but one of
// metadata has null.
func JSONOfEmptyLists(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	if _, err := e.at(ctx, gadgets, 0); err != nil {
		return err
	}
	return errors.Join(
		e.same(ctx, configMaps+"?labelSelector=none&"+exactly(rv),
			matches(`\{"kind":"ConfigMapList","apiVersion":"v1","metadata":\{"resourceVersion":"`+rv+`"\},"items":\[\]\}\n$`)),
		e.same(ctx, gadgets+"?labelSelector=none"+anyVersionAnd, mask(compare.ListRV),
			matches(`\{"apiVersion":"conformance.example.com/v1","items":\[\],"kind":"GadgetList","metadata":\{"continue":"","resourceVersion":"\d+"\}\}\n$`)),
		e.same(ctx, core+"limitranges"+anyVersion, mask(compare.ListRV), has(`"items":[]`)),
		e.same(ctx, configMaps+"?labelSelector=none&"+exactly(rv), accept(compare.YAML), has("items: []\n")),
		e.same(ctx, configMaps+"?labelSelector=none&"+exactly(rv), accept(compare.Protobuf), enveloped("ConfigMapList")),
		e.same(ctx, configMaps+"?labelSelector=none&"+exactly(rv), accept(metadataList), has(`"items":null`)),
		e.same(ctx, configMaps+"?labelSelector=none&"+exactly(rv), accept(tableV1), has(`"rows":[]`)),
	)
}

// MetadataItemsSayTheirKind: §5, items of a PartialObjectMetadataList have kind
// and apiVersion.
func MetadataItemsSayTheirKind(ctx context.Context, e *Env) error {
	const item = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"`
	return errors.Join(
		e.same(ctx, configMaps+anyVersion, accept(metadataList), mask(compare.ListRV), has(`"items":[`+item)),
		e.same(ctx, gadgets+anyVersion, accept(metadataList), mask(compare.ListRV), has(`"items":[`+item)),
	)
}

// ProtobufEnvelope: §5, k8s and a zero, then a runtime.Unknown with the kind
// and the object.
func ProtobufEnvelope(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+"/cm-1"+anyVersion, accept(compare.Protobuf), enveloped("ConfigMap"), decoded(&corev1.ConfigMap{}, "<script>")),
		e.same(ctx, pods+"/ready"+anyVersion, accept(compare.Protobuf), enveloped("Pod"), decoded(&corev1.Pod{}, "10.1.2.3")),
		e.same(ctx, "/api/v1/nodes/node-0"+anyVersion, accept(compare.Protobuf), enveloped("Node"), ageing),
		e.same(ctx, configMaps+"/no-such"+anyVersion, accept(compare.Protobuf), code(404), enveloped("Status")),
	)
}

// decoded is protobuf that can be read as an object with a text in it.
func decoded(into interface {
	Unmarshal([]byte) error
	String() string
}, text string) option {
	return check(func(a *compare.Answer) error {
		u, err := compare.Envelope(a.Body)
		if err != nil {
			return err
		}
		if err := into.Unmarshal(u.Raw); err != nil {
			return err
		}
		if !strings.Contains(into.String(), text) {
			return fmt.Errorf("without %s: %s", text, into)
		}
		return nil
	})
}

// ProtobufList: §5, items of a list are bare messages.
func ProtobufList(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	exact := configMaps + "?" + exactly(rv)
	return errors.Join(
		e.same(ctx, exact, accept(compare.Protobuf), enveloped("ConfigMapList"), decoded(&corev1.ConfigMapList{}, "<script>"), has(rv)),
		e.same(ctx, exact+"&limit=2", accept(compare.Protobuf), enveloped("ConfigMapList"), has("eyJ2")),
		e.same(ctx, exact+"&labelSelector=color=red", accept(compare.Protobuf), hasNot("cm-2")),
		e.same(ctx, exact+"&fieldSelector=metadata.name=cm-2", accept(compare.Protobuf), hasNot("cm-1")),
	)
}

// ProtobufFrames: §5, a frame is a length of four bytes, big end first, and a
// WatchEvent whose object is a complete envelope.
func ProtobufFrames(ctx context.Context, e *Env) error {
	var errs []error
	for _, path := range []string{pods, configMaps} {
		if _, err := e.at(ctx, path, 0); err != nil {
			return err
		}
		errs = append(errs, e.same(ctx, path+anyVersion+"&watch=1&timeoutSeconds=1", accept(compare.Protobuf), contentType(compare.ProtobufWatch),
			check(func(a *compare.Answer) error {
				frames, err := compare.Frames(compare.ProtobufWatch, a.Body)
				if err != nil {
					return err
				}
				if len(frames) < 3 || frames[0].Type != "ADDED" || frames[0].Namespace != ns {
					return fmt.Errorf("%d frames", len(frames))
				}
				return nil
			})))
	}
	return errors.Join(append(errs, e.same(ctx, pods+anyVersion+"&watch=1&timeoutSeconds=1&allowWatchBookmarks=1", accept(compare.Protobuf),
		mask(withoutBookmarks(compare.ProtobufWatch)), has("k8s.io/initial-events-end")))...)
}

// WatchFraming: §5, a watch over HTTP/1.1 is 200 and in chunks, without a
// length.
func WatchFraming(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	for _, media := range []string{compare.JSON, compare.Protobuf, tableV1, metadata} {
		w, err := e.watch(ctx, p.path+"?watch=1&resourceVersion="+p.rv, accept(media))
		if err != nil {
			return err
		}
		w.Close()
		for _, s := range []*compare.Stream{w.Want, w.Got} {
			if a := s.Answer; !a.Chunked || a.Header.Get("Content-Length") != "" || a.Proto != "HTTP/1.1" {
				err := fmt.Errorf("%s: chunked %v, %s, %v", media, a.Chunked, a.Proto, a.Header)
				if s == w.Want {
					return err
				}
				return &compare.Difference{Request: p.path, What: "framing", Want: "chunks", Got: err.Error()}
			}
		}
	}
	return nil
}

// WatchHeadersAtOnce: §5, the headers of a watch are sent before there is any
// event, and each event when there is no other behind it.
func WatchHeadersAtOnce(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	for _, media := range []string{compare.JSON, compare.Protobuf, tableV1, metadata, metadataProtobuf} {
		if err := e.oneByOne(ctx, p, media); err != nil {
			return fmt.Errorf("%s: %w", media, err)
		}
	}
	return nil
}

// oneByOne opens a watch, which returns with the headers, and makes the next
// change when the event of the one before has come.
func (e *Env) oneByOne(ctx context.Context, p playground, media string) error {
	rv, err := e.at(ctx, p.path, 0)
	if err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?watch=1&resourceVersion="+rv, accept(media))
	if err != nil {
		return err
	}
	defer w.Close()
	w.Mask = printed
	for i := range 3 {
		at, err := e.patch(ctx, p.path+"/a", fmt.Sprintf(`{"data":{"n":"%s-%d"}}`, media[12:], i))
		if err != nil {
			return err
		}
		if _, err := w.Until(ctx, count(1)); err != nil {
			return err
		}
		if _, err := e.at(ctx, p.path, at); err != nil {
			return err
		}
	}
	return nil
}

// WatchEndsCleanly: §5, a watch whose time is up ends with a clean end of the
// body.
func WatchEndsCleanly(ctx context.Context, e *Env) error {
	clean := check(func(a *compare.Answer) error { return a.End })
	return errors.Join(
		e.replay(ctx, configMaps+"?watch=1", clean),
		e.replay(ctx, gadgets+"?watch=1", clean),
		e.replay(ctx, configMaps+"?watch=1", accept(metadata), clean),
		e.same(ctx, configMaps+anyVersion+"&watch=1&timeoutSeconds=1", accept(compare.Protobuf), clean, mask(compare.Bookmarks(compare.ProtobufWatch))),
	)
}

const largeList = "/api/v1/namespaces/conf-large/configmaps"

// unzipped shows what was compressed: two servers may cut it differently.
func unzipped(body []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return append(text, err.Error()...)
	}
	return text
}

var gzipped = []option{sends("Content-Encoding", "gzip"), sends("Vary", "Accept-Encoding"), mask(unzipped)}

// GzipOfLargeLists: §5, lists and objects above 128 KiB are compressed for who
// accepts it, smaller ones are not.
func GzipOfLargeLists(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, largeList, 0)
	if err != nil {
		return err
	}
	exact := "?" + exactly(rv)
	zip := header("Accept-Encoding", "gzip")
	return errors.Join(
		e.same(ctx, largeList+exact, append(gzipped, zip, code(200))...),
		e.same(ctx, largeList+exact, sends("Content-Encoding"), sends("Vary"), code(200)),
		e.same(ctx, largeList+exact+"&limit=2", zip, sends("Content-Encoding"), code(200)),
		e.same(ctx, largeList+exact+"&limit=4", append(gzipped, zip, code(200))...),
		e.same(ctx, configMaps+exact, zip, sends("Content-Encoding"), sends("Vary"), code(200)),
		e.same(ctx, largeList+"/large-1"+anyVersion, zip, sends("Content-Encoding"), code(200)),
		e.same(ctx, largeList+exact+"&pretty=1", append(gzipped, zip, code(200))...),
		e.same(ctx, largeList+"/no-such"+anyVersion, zip, sends("Content-Encoding"), code(404)),
	)
}

// GzipTokens: §5, only the token gzip counts, without a weight, among others
// or alone.
func GzipTokens(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, largeList, 0)
	if err != nil {
		return err
	}
	exact := largeList + "?" + exactly(rv)
	var errs []error
	for _, accepted := range []string{"gzip", "deflate, gzip", "gzip, deflate, br", "br,gzip", " gzip "} {
		errs = append(errs, e.same(ctx, exact, append(gzipped, header("Accept-Encoding", accepted))...))
	}
	for _, accepted := range []string{"gzip;q=1.0", "gzip;q=0", "GZIP", "*", "deflate", "identity", "x-gzip", ""} {
		errs = append(errs, e.same(ctx, exact, header("Accept-Encoding", accepted), sends("Content-Encoding")))
	}
	return errors.Join(errs...)
}

// GzipOfEncodings: §5, the size that counts is that of the encoding.
func GzipOfEncodings(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, largeList, 0)
	if err != nil {
		return err
	}
	exact := largeList + "?" + exactly(rv)
	zip := header("Accept-Encoding", "gzip")
	return errors.Join(
		e.same(ctx, exact, append(gzipped, zip, accept(compare.YAML))...),
		e.same(ctx, exact, append(gzipped, zip, accept(compare.Protobuf))...),
		e.same(ctx, exact+"&includeObject=Object", append(gzipped, zip, accept(tableV1), ageing)...),
		e.same(ctx, exact, zip, accept(tableV1), ageing, sends("Content-Encoding")),
		e.same(ctx, exact, zip, accept(metadataList), sends("Content-Encoding")),
		e.same(ctx, exact, zip, accept(metadataListProtobuf), sends("Content-Encoding")),
	)
}

// GzipNeverOnWatch: §5, a watch is not compressed, however large.
func GzipNeverOnWatch(ctx context.Context, e *Env) error {
	zip := header("Accept-Encoding", "gzip")
	return errors.Join(
		e.replay(ctx, largeList+"?watch=1", zip, sends("Content-Encoding"), sends("Vary"), has("all work and no play")),
		e.same(ctx, largeList+anyVersion+"&watch=1&timeoutSeconds=1", zip, accept(compare.Protobuf), sends("Content-Encoding"), has("all work and no play")),
	)
}

// CacheControl: §5, always no-cache and private.
func CacheControl(ctx context.Context, e *Env) error {
	private := sends("Cache-Control", "no-cache, private")
	var errs []error
	for _, path := range []string{
		configMaps + "/cm-1" + anyVersion, configMaps + "/no-such" + anyVersion, gadgets + "/g-1" + anyVersion,
		configMaps + anyVersion + "&limit=x", "/api/v1/no-such", "/apis/no.such/v1/x", "/version",
	} {
		errs = append(errs, e.same(ctx, path, private))
	}
	return errors.Join(append(errs,
		e.same(ctx, configMaps+anyVersion, private, mask(compare.ListRV)),
		e.same(ctx, configMaps+anyVersion, accept("text/html"), private),
		e.replay(ctx, configMaps+"?watch=1", private),
	)...)
}

// Warnings: §5, deprecated versions have a Warning, on lists, objects and
// watches, in every encoding.
func Warnings(ctx context.Context, e *Env) error {
	old := strings.Replace(gadgets, "/v1/", "/v1beta1/", 1)
	var errs []error
	for path, warning := range map[string]string{
		core + "endpoints": `299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"`,
		old:                `299 - "gadgets are \"old\" in v1beta1"`,
	} {
		rv, err := e.at(ctx, path, 0)
		if err != nil {
			return err
		}
		warned := sends("Warning", warning)
		exact := path + "?" + exactly(rv)
		errs = append(errs,
			e.same(ctx, exact, warned, code(200)),
			e.same(ctx, exact, accept(tableV1), warned, ageing),
			e.same(ctx, exact, accept(metadataListProtobuf), warned),
			e.same(ctx, exact, accept(compare.YAML), warned),
			e.same(ctx, path+"/no-such"+anyVersion, warned, code(404)),
			e.same(ctx, path+anyVersion+"&limit=x", warned, code(400)),
			e.replay(ctx, path+"?watch=1", warned),
			e.replay(ctx, path+"?watch=1", accept(tableV1), ageing, warned))
	}
	return errors.Join(append(errs,
		e.same(ctx, core+"endpoints/by-hand"+anyVersion, sends("Warning", `299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"`), code(200)),
		e.same(ctx, configMaps+anyVersion, sends("Warning"), mask(compare.ListRV)),
	)...)
}

// OtherVersions: §5, another version of a resource is the same objects under
// its name.
func OtherVersions(ctx context.Context, e *Env) error {
	old := strings.Replace(gadgets, "/v1/", "/v1beta1/", 1)
	const scalers = "/apis/autoscaling/v1/namespaces/conf-b/horizontalpodautoscalers"
	if _, err := e.at(ctx, scalers, 0); err != nil {
		return err
	}
	return errors.Join(
		e.replay(ctx, old+"?watch=1", events("ADDED g-1", "ADDED g-2"), has(`"apiVersion":"conformance.example.com/v1beta1"`)),
		e.same(ctx, old+"/g-1"+anyVersion, has(`"apiVersion":"conformance.example.com/v1beta1"`)),
		e.same(ctx, scalers+"/web"+anyVersion, has(`"apiVersion":"autoscaling/v1"`), ageing),
		e.same(ctx, scalers+anyVersion, has(`"apiVersion":"autoscaling/v1"`), mask(compare.ListRV), ageing),
	)
}

// OverHTTP2: §5, over HTTP/2 everything is the same, but for chunks.
func OverHTTP2(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	two := []option{as(compare.AsHTTP2), check(func(a *compare.Answer) error {
		if a.Proto != "HTTP/2.0" {
			return errors.New(a.Proto)
		}
		return nil
	})}
	return errors.Join(
		e.same(ctx, configMaps+"?"+exactly(rv), append(two, items(still...))...),
		e.same(ctx, configMaps+"/cm-1"+anyVersion, append(two, kind("ConfigMap"))...),
		e.same(ctx, configMaps+"/no-such"+anyVersion, append(two, code(404))...),
		e.same(ctx, configMaps+anyVersion+"&limit=x", append(two, code(400))...),
		e.replay(ctx, configMaps+"?watch=1", append(two, events(added(still...)...))...),
		e.replay(ctx, gadgets+"?watch=1", append(two, events("ADDED g-1", "ADDED g-2"))...),
		e.same(ctx, pods+anyVersion+"&watch=1&timeoutSeconds=1", append(two, accept(compare.Protobuf), contentType(compare.ProtobufWatch))...),
	)
}

// FrameByFrame: §5 and §4, live events in every encoding and view, with
// transitions by a selector, and with a bookmark at the end.
func FrameByFrame(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	var pairs []*compare.Pair
	defer func() {
		for _, w := range pairs {
			w.Close()
		}
	}()
	medias := []string{compare.JSON, compare.Protobuf, tableV1, tableV1beta1, metadata, metadataProtobuf}
	for _, media := range medias {
		for _, query := range []string{"", "&labelSelector=on=yes"} {
			w, err := e.watch(ctx, p.path+"?watch=1&includeObject=Object&resourceVersion="+p.rv+query, accept(media))
			if err != nil {
				return err
			}
			w.Mask = printed
			pairs = append(pairs, w)
		}
	}
	if _, err := e.steps(ctx,
		step{"PATCH", p.path + "/a", labelled(`"yes"`)},
		step{"PATCH", p.path + "/a", `{"data":{"x":"<y>"},"binaryData":{"z":"AAEC"}}`},
		step{"PATCH", p.path + "/a", labelled(`"no"`)},
		step{"PATCH", p.path + "/b", labelled(`"yes"`)},
		step{"DELETE", p.path + "/b", ""},
	); err != nil {
		return err
	}
	var errs []error
	for _, w := range pairs {
		// Five events either way: a comes and goes, b as well.
		_, err := w.Until(ctx, count(5))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
