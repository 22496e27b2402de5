// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// Media types of the API's views.
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

// kubectlAccept is what kubectl get sends.
const kubectlAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

// negotiated are the Content-Types of the answers to a LIST, a GET and a WATCH,
// or refused.
type negotiated struct{ list, get, watch string }

const refused = "406"

// negotiate sends an Accept, unless it is empty, with a LIST, a GET, a GET of an
// object that does not exist, and a WATCH.
func (e *Env) negotiate(ctx context.Context, path, name, media string, want negotiated) error {
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
		return e.same(ctx, path, append(more, retried, code(200), contentType(answer), mask(compare.Bookmarks(answer)))...)
	}
	missing := []option{code(404, 406)}
	if media != "" {
		missing = append(missing, accept(media))
	}
	return together(4,
		func() error { return ask(path+"?"+exactly(rv), want.list) },
		func() error { return ask(path+"/"+name+anyVersion, want.get) },
		func() error { return e.same(ctx, path+"/no-such"+anyVersion, missing...) },
		func() error { return ask(path+anyVersion+"&watch=1&timeoutSeconds=1", want.watch) },
	)
}

func protobufEnvelope(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+"/cm-1"+anyVersion, accept(compare.Protobuf), enveloped("ConfigMap"), decoded(&corev1.ConfigMap{}, "<script>")),
		e.same(ctx, pods+"/ready"+anyVersion, accept(compare.Protobuf), enveloped("Pod"), decoded(&corev1.Pod{}, "10.1.2.3")),
		e.same(ctx, "/api/v1/nodes/node-0"+anyVersion, accept(compare.Protobuf), enveloped("Node"), retried),
		e.same(ctx, configMaps+"/no-such"+anyVersion, accept(compare.Protobuf), code(404), enveloped("Status")),
	)
}

func protobufList(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	exact := configMaps + "?" + exactly(rv)
	return errors.Join(
		e.same(ctx, exact, accept(compare.Protobuf), enveloped("ConfigMapList"), decoded(&corev1.ConfigMapList{}, "<script>"), has(rv)),
		e.same(ctx, exact+"&limit=2", accept(compare.Protobuf), enveloped("ConfigMapList"), has("eyJ2")),
		e.same(ctx, exact+"&labelSelector=color=red", accept(compare.Protobuf), lacks("cm-2")),
		e.same(ctx, exact+"&fieldSelector=metadata.name=cm-2", accept(compare.Protobuf), lacks("cm-1")),
	)
}

// decoded checks that the answer is protobuf of an object that contains a text.
func decoded(into interface {
	Unmarshal([]byte) error
	String() string
}, text string) option {
	return check(func(a *compare.Answer) error {
		u, err := watchread.Envelope(a.Body)
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

func protobufFrames(ctx context.Context, e *Env) error {
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
				if len(frames) < 3 || frames[0].Type != "ADDED" || frames[0].Namespace != fixtureNamespace {
					return fmt.Errorf("%d frames", len(frames))
				}
				return nil
			})))
	}
	return errors.Join(append(errs, e.same(ctx, pods+anyVersion+"&watch=1&timeoutSeconds=1&allowWatchBookmarks=1", accept(compare.Protobuf),
		mask(withoutLaterBookmarks(compare.ProtobufWatch)), has("k8s.io/initial-events-end")))...)
}

func watchFraming(ctx context.Context, e *Env) error {
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

func watchHeadersAtOnce(ctx context.Context, e *Env) error {
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

// oneByOne opens a watch, waits for the headers, and makes each change after the
// event of the previous change has arrived.
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
		changed, err := e.patch(ctx, p.path+"/a", fmt.Sprintf(`{"data":{"n":"%s-%d"}}`, media[12:], i))
		if err != nil {
			return err
		}
		if _, err := w.Until(ctx, count(1)); err != nil {
			return err
		}
		if _, err := e.at(ctx, p.path, changed); err != nil {
			return err
		}
	}
	return nil
}

func frameByFrame(ctx context.Context, e *Env) error {
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
		// Both queries select five events.
		_, err := w.Until(ctx, count(5))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// webSocketInProtobuf checks that a message begins with the event, not with its
// length.
func webSocketInProtobuf(ctx context.Context, e *Env) error {
	if _, err := e.at(ctx, configMaps, 0); err != nil {
		return err
	}
	_, all, err := e.socket(ctx, configMaps+"?watch=1&timeoutSeconds=1&resourceVersion=0",
		sentHeader("Origin: "+compare.OwnOrigin), accept(compare.Protobuf), code(101))
	if err != nil {
		return err
	}
	if len(all) != len(allConfigMaps)+1 || all[0].Op != compare.OpBinary || all[0].Payload[0] == 0 {
		return fmt.Errorf("the API server: %v", all)
	}
	return nil
}
