// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"net/http"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var clientRules = rules("§7",
	ReflectorStreamingList, ReflectorNextRound, ReflectorListThenWatch, ReflectorAfterExpiry, MetadataInformer,
	KubectlGetWatch, KubectlGetWatchOne, KubectlWait, KubeRSPaged, KubeRSStreaming,
)

const (
	kubectlAccept   = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	typedAccept     = "application/vnd.kubernetes.protobuf,application/json"
	informerAccept  = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	informerWatches = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// follow opens a watch as a client does, changes a and marks the end, and
// compares the events: first those of the state, then the changes.
func (e *Env) follow(ctx context.Context, p playground, query, media string, state ...string) ([]compare.Frame, error) {
	w, err := e.watch(ctx, p.path+"?"+query, accept(media))
	if err != nil {
		return nil, err
	}
	defer w.Close()
	w.Mask = printed
	var first []compare.Frame
	if len(state) > 0 {
		if first, err = w.Until(ctx, count(len(state))); err != nil {
			return nil, err
		}
	}
	if err := sequence(first, state...); err != nil {
		return nil, err
	}
	if _, err := e.steps(ctx,
		step{http.MethodPatch, p.path + "/a", `{"data":{"by":"` + fmt.Sprint(len(query)+len(media)) + `"}}`},
		step{http.MethodDelete, p.path + "/b", ""},
		step{http.MethodPost, p.path, `{"metadata":{"name":"b"}}`}); err != nil {
		return nil, err
	}
	rest, err := w.Until(ctx, count(3))
	if err != nil {
		return nil, err
	}
	return append(first, rest...), sequence(rest, "MODIFIED a", "DELETED b", "ADDED b")
}

var playgroundState = []string{"ADDED a", "ADDED b", "ADDED kube-root-ca.crt", "BOOKMARK end"}

const reflectorWatch = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=417&watch=true"

// ReflectorStreamingList: §7, client-go's first round: a watch with the initial
// events up to the annotated bookmark, and on the same stream what follows; in
// protobuf and in JSON.
func ReflectorStreamingList(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	for _, media := range []string{typedAccept, compare.JSON} {
		if _, err := e.follow(ctx, p, reflectorWatch, media, playgroundState...); err != nil {
			return err
		}
	}
	return nil
}

// ReflectorNextRound: §7, client-go's later rounds: the same from its last RV,
// and a plain watch from there.
func ReflectorNextRound(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	for _, media := range []string{typedAccept, compare.JSON} {
		frames, err := e.follow(ctx, p, reflectorWatch+"&resourceVersion="+p.rv, media, playgroundState...)
		if err != nil {
			return err
		}
		last := frames[len(frames)-1].RV
		if _, err := e.follow(ctx, p, "allowWatchBookmarks=true&resourceVersion="+last+"&timeoutSeconds=417&watch=true", media); err != nil {
			return err
		}
	}
	return nil
}

// ReflectorListThenWatch: §7, client-go's fallback: a list of any version with
// a limit, and a watch from its RV.
func ReflectorListThenWatch(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	for _, media := range []string{typedAccept, compare.JSON} {
		if err := e.same(ctx, p.path+"?limit=500&resourceVersion=0", accept(compare.JSON), items("a", "b", "kube-root-ca.crt"), mask(compare.ListRV)); err != nil {
			return err
		}
		got, rv, err := version(ctx, e.Got, p.path+"?limit=500&resourceVersion=0")
		if err != nil {
			return err
		}
		e.count(got)
		if _, err := e.follow(ctx, p, fmt.Sprintf("allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=417&watch=true", rv), media); err != nil {
			return err
		}
	}
	return nil
}

// ReflectorAfterExpiry: §7, client-go after a 410: a streaming list without an
// RV.
func ReflectorAfterExpiry(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	if err := e.same(ctx, fmt.Sprintf("%s?allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=417&watch=true", gadgets, e.old), events("ERROR 410")); err != nil {
		return err
	}
	_, err = e.follow(ctx, p, reflectorWatch+"&resourceVersion=", typedAccept, playgroundState...)
	return err
}

// MetadataInformer: §7, an informer of metadata, of what is built in and of
// what is custom.
func MetadataInformer(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	if err := e.same(ctx, p.path+"?"+exactly(p.rv), accept(informerAccept), contentType(compare.Protobuf)); err != nil {
		return err
	}
	if _, err := e.follow(ctx, p, reflectorWatch, informerWatches, playgroundState...); err != nil {
		return err
	}
	w, err := e.watch(ctx, gadgets+"?"+reflectorWatch, accept(informerWatches))
	if err != nil {
		return err
	}
	defer w.Close()
	frames, err := w.Until(ctx, count(3))
	if err != nil {
		return err
	}
	return sequence(frames, "ADDED g-1", "ADDED g-2", "BOOKMARK end")
}

// KubectlGetWatch: §7, kubectl get -w: a list as a Table, and a watch from its
// RV.
func KubectlGetWatch(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	if err := e.same(ctx, p.path+"?limit=500", accept(kubectlAccept), ageing, mask(compare.ListRV), kind("Table")); err != nil {
		return err
	}
	got, rv, err := version(ctx, e.Got, p.path+"?limit=500")
	if err != nil {
		return err
	}
	e.count(got)
	_, err = e.follow(ctx, p, fmt.Sprintf("resourceVersion=%d&watch=true", rv), kubectlAccept)
	return err
}

// KubectlGetWatchOne: §7, kubectl get NAME -w: the object, and a watch of its
// name at RV 0.
func KubectlGetWatchOne(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	if err := e.same(ctx, p.path+"/a", accept(kubectlAccept), ageing, kind("Table")); err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?fieldSelector=metadata.name%3Da&resourceVersion=0&watch=true", accept(kubectlAccept))
	if err != nil {
		return err
	}
	defer w.Close()
	w.Mask = printed
	if _, err := e.steps(ctx, step{http.MethodDelete, p.path + "/b", ""}, step{http.MethodDelete, p.path + "/a", ""}); err != nil {
		return err
	}
	frames, err := w.Until(ctx, count(2))
	if err != nil {
		return err
	}
	return sequence(frames, "ADDED a", "DELETED a")
}

// KubectlWait: §7, kubectl wait: a streaming list of one name.
func KubectlWait(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?fieldSelector=metadata.name%3Da&"+reflectorWatch, accept(compare.JSON))
	if err != nil {
		return err
	}
	defer w.Close()
	frames, err := w.Until(ctx, count(2))
	if err != nil {
		return err
	}
	if err := sequence(frames, "ADDED a", "BOOKMARK end"); err != nil {
		return err
	}
	if err := e.remove(ctx, p.path+"/a"); err != nil {
		return err
	}
	frames, err = w.Until(ctx, count(1))
	if err != nil {
		return err
	}
	return sequence(frames, "DELETED a")
}

// KubeRSPaged: §7, kube-rs: pages of a consistent list, and a watch from its
// RV, which ends after 290 s.
func KubeRSPaged(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	a, err := e.ask(ctx, p.path+"?&limit=2", items("a", "b"), mask(compare.ListRV))
	if err != nil {
		return err
	}
	l, err := readList(a)
	if err != nil {
		return err
	}
	if err := e.same(ctx, p.path+"?&limit=2&continue="+l.Metadata.Continue, items("kube-root-ca.crt")); err != nil {
		return err
	}
	_, err = e.follow(ctx, p, "&watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion="+l.Metadata.ResourceVersion, compare.JSON)
	return err
}

// KubeRSStreaming: §7, kube-rs: a streaming list at RV 0.
func KubeRSStreaming(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	_, err = e.follow(ctx, p, "&watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0",
		compare.JSON, playgroundState...)
	return err
}
