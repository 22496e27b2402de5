// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var viewRules = rules("§5",
	TableOfList, TableOfObject, TableOfWatch, TableRows, TableOfCustomResources, TablePages, TableBookmark, TableOfStatus,
	MetadataOfList, MetadataOfObject, MetadataOfWatch, MetadataInProtobuf,
	EveryKindInJSON, EveryKindInProtobuf, EveryKindInYAML, EveryKindAsTable, EveryKindAsMetadata,
	EveryKindWatchedInJSON, EveryKindWatchedInProtobuf, EveryKindWatchedAsTable, EveryKindWatchedAsMetadata,
)

// TableOfList: §5, a list as a Table of either version has the list's RV, the
// columns and a row per item.
func TableOfList(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, pods, 0)
	if err != nil {
		return err
	}
	path := pods + "?" + exactly(rv)
	return errors.Join(
		e.same(ctx, path, accept(tableV1), ageing, has(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`+rv+`"},"columnDefinitions":[{"name":"Name"`)),
		e.same(ctx, path, accept(tableV1beta1), ageing, has(`{"kind":"Table","apiVersion":"meta.k8s.io/v1beta1","metadata":{"resourceVersion":"`+rv+`"}`)),
		e.same(ctx, path+"&labelSelector=none", accept(tableV1), has(`"rows":[]`)),
		e.same(ctx, path, accept(tableYAML), ageing, has("kind: Table\n")),
		e.same(ctx, configMaps+anyVersion+"&fieldSelector=metadata.name=cm-1", accept(tableV1), ageing, mask(compare.ListRV), has(`"cells":["cm-1",4,"`)),
	)
}

// TableOfObject: §5, an object as a Table is one row, and the Table's RV is the
// object's.
func TableOfObject(ctx context.Context, e *Env) error {
	if _, err := e.at(ctx, pods, 0); err != nil {
		return err
	}
	var errs []error
	for _, media := range []string{tableV1, tableV1beta1, tableYAML} {
		for _, include := range []string{"", "Object", "None", "Metadata"} {
			errs = append(errs,
				e.same(ctx, pods+"/ready"+anyVersion+"&includeObject="+include, accept(media), ageing, code(200)),
				e.same(ctx, gadgets+"/g-1"+anyVersion+"&includeObject="+include, accept(media), ageing, code(200)))
		}
	}
	return errors.Join(errs...)
}

// TableOfWatch: §5, each event is a Table of one row; only the first one has
// the columns.
func TableOfWatch(ctx context.Context, e *Env) error {
	once := check(func(a *compare.Answer) error {
		for i, line := range strings.Split(strings.TrimSpace(a.Text()), "\n") {
			if columns := !strings.Contains(line, `"columnDefinitions":null`); columns != (i == 0) {
				return fmt.Errorf("columns in event %d: %v", i, columns)
			}
		}
		return nil
	})
	var errs []error
	for _, media := range []string{tableV1, tableV1beta1} {
		for _, include := range []string{"Metadata", "Object", "None"} {
			for _, path := range []string{pods, gadgets} {
				errs = append(errs, e.replay(ctx, path+"?watch=1&includeObject="+include, accept(media), mask(ages), once))
			}
		}
	}
	return errors.Join(errs...)
}

// printed takes out of a watch of Tables what depends on the moment. The API
// server shares what it has encoded among its watches: it gives the columns to
// some more than once, and prints an age once for all.
func printed(body []byte) []byte {
	return columns.ReplaceAll(ages(body), []byte(`${1}null${2}`))
}

// ages blanks the cells that are durations.
func ages(body []byte) []byte {
	return cells.ReplaceAllFunc(body, func(row []byte) []byte { return age.ReplaceAll(row, []byte(`${1}"AGE"`)) })
}

var (
	columns = regexp.MustCompile(`("columnDefinitions":)\[.*?\](,"rows":)`)
	cells   = regexp.MustCompile(`"cells":\[.*?\],"object":`)
	age     = regexp.MustCompile(`([\[,])"(?:\d+[smhdy])+"`)
)

// TableRows: §5, the object in a row is its metadata, all of it, or null.
func TableRows(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	var errs []error
	for include, object := range map[string]string{
		"Metadata": `"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/VERSION"`,
		"Object":   `"object":{"kind":"ConfigMap","apiVersion":"v1"`,
		"None":     `"object":null`,
	} {
		for version, media := range map[string]string{"v1": tableV1, "v1beta1": tableV1beta1} {
			errs = append(errs, e.same(ctx, configMaps+"?includeObject="+include+"&"+exactly(rv),
				accept(media), ageing, has(strings.ReplaceAll(object, "VERSION", version))))
		}
	}
	return errors.Join(errs...)
}

// TableOfCustomResources: §5, their columns are the name and what their
// definition says, or the age.
func TableOfCustomResources(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, gadgets, 0)
	if err != nil {
		return err
	}
	if _, err := e.at(ctx, beacons, 0); err != nil {
		return err
	}
	path := gadgets + "?" + exactly(rv)
	return errors.Join(
		e.same(ctx, path, accept(tableV1), ageing, has(`"name":"Color","type":"string"`), has(`"cells":["g-1","red",1,true,"`)),
		e.same(ctx, path+"&includeObject=Object", accept(tableV1beta1), ageing, has(`"object":{"apiVersion":"conformance.example.com/v1"`)),
		e.same(ctx, strings.Replace(gadgets, "/v1/", "/v1beta1/", 1)+anyVersion, accept(tableV1), ageing, mask(compare.ListRV), has(`"name":"Age"`)),
		e.same(ctx, beacons+anyVersion, accept(tableV1), ageing, mask(compare.ListRV), has(`"name":"Age"`)),
	)
}

// TablePages: §5, the token and the count of a page are those of the list.
func TablePages(ctx context.Context, e *Env) error {
	rv, err := e.at(ctx, configMaps, 0)
	if err != nil {
		return err
	}
	a, err := e.ask(ctx, configMaps+"?limit=2&resourceVersion="+rv, accept(tableV1), ageing, has(`"continue":"ey`), has(`"remainingItemCount":4`))
	if err != nil {
		return err
	}
	l, err := metadataOf(a)
	if err != nil {
		return err
	}
	return e.same(ctx, configMaps+"?limit=3&continue="+l.Continue, accept(tableV1), ageing, has(`"remainingItemCount":1`), has(`"cells":["cm-3"`))
}

func metadataOf(a *compare.Answer) (metav1.ListMeta, error) {
	var l struct{ Metadata metav1.ListMeta }
	err := json.Unmarshal(a.Body, &l)
	return l.Metadata, err
}

// TableBookmark: §5, the end bookmark is a row whose object has the annotation,
// whatever object was asked for.
func TableBookmark(ctx context.Context, e *Env) error {
	var errs []error
	for _, include := range []string{"Metadata", "Object", "None"} {
		for _, path := range []string{pods, gadgets} {
			if _, err := e.at(ctx, path, 0); err != nil {
				return err
			}
			path += "?watch=1&allowWatchBookmarks=1&timeoutSeconds=2&resourceVersion=0&includeObject=" + include
			for _, media := range []string{tableV1, tableV1beta1} {
				errs = append(errs,
					e.same(ctx, path, accept(media), mask(noBookmarks), mask(ages), has(`"k8s.io/initial-events-end":"true"`)),
					e.same(ctx, path+"&fieldSelector=metadata.name=none", accept(media), mask(noBookmarks), has(`"k8s.io/initial-events-end":"true"`)))
			}
		}
	}
	return errors.Join(errs...)
}

// TableOfStatus: §5, an error is a Status also where a view was asked for, and
// then always in JSON.
func TableOfStatus(ctx context.Context, e *Env) error {
	return errors.Join(
		e.same(ctx, configMaps+"/no-such"+anyVersion, accept(tableV1), status(404, "NotFound", `configmaps "no-such" not found`)),
		e.same(ctx, gadgets+"/no-such"+anyVersion, accept(tableV1), status(404, "NotFound", `gadgets.conformance.example.com "no-such" not found`)),
		e.same(ctx, configMaps+"/no-such"+anyVersion, accept(tableYAML), status(404, "NotFound", `configmaps "no-such" not found`)),
		e.same(ctx, configMaps+"/no-such"+anyVersion, accept(metadata), status(404, "NotFound", `configmaps "no-such" not found`)),
		e.same(ctx, configMaps+"/no-such"+anyVersion, accept(metadataProtobuf), status(404, "NotFound", `configmaps "no-such" not found`)),
	)
}

// MetadataOfList: §5, a list of metadata only, whose items say so.
func MetadataOfList(ctx context.Context, e *Env) error {
	var errs []error
	for _, path := range []string{configMaps, pods, gadgets, beacons} {
		rv, err := e.at(ctx, path, 0)
		if err != nil {
			return err
		}
		exact := path + "?" + exactly(rv)
		errs = append(errs,
			e.same(ctx, exact, accept(metadataList), has(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`+rv+`"},"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"`)),
			e.same(ctx, exact, accept(strings.Replace(metadataList, "v=v1", "v=v1beta1", 1)), code(200)),
			e.same(ctx, exact, accept(metadataListYAML), has("kind: PartialObjectMetadataList\n")),
			e.same(ctx, exact+"&limit=1", accept(metadataList), has(`"kind":"PartialObjectMetadata"`)),
			e.same(ctx, exact+"&labelSelector=none", accept(metadataList), has(`"items":null`)))
	}
	return errors.Join(errs...)
}

// MetadataOfObject: §5, an object's metadata only.
func MetadataOfObject(ctx context.Context, e *Env) error {
	var errs []error
	for _, path := range []string{configMaps + "/cm-1", configMaps + "/cm-4", pods + "/ready", gadgets + "/g-1", beacons + "/south"} {
		errs = append(errs,
			e.same(ctx, path+anyVersion, accept(metadata), has(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{`)),
			e.same(ctx, path+anyVersion, accept(strings.Replace(metadata, "v=v1", "v=v1beta1", 1)), code(200)),
			e.same(ctx, path+anyVersion, accept(metadataYAML), has("kind: PartialObjectMetadata\n")))
	}
	return errors.Join(errs...)
}

// MetadataOfWatch: §5, a watch of metadata only; its bookmarks are of that kind
// as well.
func MetadataOfWatch(ctx context.Context, e *Env) error {
	var errs []error
	for _, path := range []string{configMaps, pods, gadgets, beacons} {
		errs = append(errs,
			e.replay(ctx, path+"?watch=1", accept(metadata), has(`"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"`), hasNot(`"spec"`)),
			e.same(ctx, path+"?watch=1&timeoutSeconds=2&allowWatchBookmarks=1&resourceVersion=0", accept(metadata), mask(noBookmarks), has(`"k8s.io/initial-events-end":"true"`)))
	}
	return errors.Join(errs...)
}

// MetadataInProtobuf: §5, also in protobuf, for what is custom too.
func MetadataInProtobuf(ctx context.Context, e *Env) error {
	var errs []error
	for path, name := range map[string]string{configMaps: "cm-1", gadgets: "g-1", beacons: "north", pods: "plain"} {
		rv, err := e.at(ctx, path, 0)
		if err != nil {
			return err
		}
		errs = append(errs,
			e.same(ctx, path+"?"+exactly(rv), accept(metadataListProtobuf), contentType(compare.Protobuf), enveloped("PartialObjectMetadataList")),
			e.same(ctx, path+"/"+name+anyVersion, accept(metadataProtobuf), contentType(compare.Protobuf), enveloped("PartialObjectMetadata")),
			e.same(ctx, path+"?watch=1&timeoutSeconds=2&allowWatchBookmarks=1&resourceVersion=0", accept(metadataProtobuf), contentType(compare.ProtobufWatch),
				mask(withoutBookmarks(compare.ProtobufWatch)), has("k8s.io/initial-events-end")))
	}
	return errors.Join(errs...)
}

// enveloped is protobuf of a kind.
func enveloped(kind string) option {
	return check(func(a *compare.Answer) error {
		u, err := compare.Envelope(a.Body)
		if err != nil {
			return err
		}
		if u.Kind != kind || len(u.Raw) == 0 {
			return fmt.Errorf("an envelope of %q, not %q", u.Kind, kind)
		}
		return nil
	})
}

// A resource is one that can be listed and watched.
type resource struct {
	prefix, name string
	namespaced   bool
}

// all is the path of its objects everywhere.
func (r resource) all() string { return r.prefix + "/" + r.name }

// still are the paths of its objects that nobody changes.
func (r resource) still() []string {
	switch {
	case r.namespaced:
		return []string{r.prefix + "/namespaces/conf/" + r.name + "?", r.prefix + "/namespaces/conf-b/" + r.name + "?"}
	case r.name == "namespaces":
		return []string{r.all() + "?labelSelector=life=still&"}
	}
	return []string{r.all() + "?"}
}

func (r resource) custom() bool { return strings.Contains(r.prefix, "example.com") }

// everyKind does something for every resource that can be listed and watched,
// a few at a time.
func (e *Env) everyKind(ctx context.Context, do func(r resource) error) error {
	all, err := e.resources(ctx)
	if err != nil {
		return err
	}
	if len(all) < 50 {
		return fmt.Errorf("only %d resources: nothing is shown", len(all))
	}
	errs := make([]error, len(all))
	places := make(chan struct{}, 6)
	var wg sync.WaitGroup
	for i, r := range all {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			errs[i] = do(r)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// resources are all that can be listed and watched, by discovery, but for the
// custom ones that rules make and change.
func (e *Env) resources(ctx context.Context) ([]resource, error) {
	a, err := e.Want.Do(ctx, compare.Request{Path: "/apis"})
	if err != nil {
		return nil, err
	}
	var groups metav1.APIGroupList
	if err := json.Unmarshal(a.Body, &groups); err != nil {
		return nil, err
	}
	prefixes := []string{"/api/v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			prefixes = append(prefixes, "/apis/"+v.GroupVersion)
		}
	}
	var out []resource
	for _, prefix := range prefixes {
		a, err := e.Want.Do(ctx, compare.Request{Path: prefix})
		if err != nil {
			return nil, err
		}
		var list metav1.APIResourceList
		if err := json.Unmarshal(a.Body, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", prefix, err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") && r.Name != "mayflies" && r.Name != "doodads" {
				out = append(out, resource{prefix, r.Name, r.Namespaced})
			}
		}
	}
	return out, nil
}

// listed compares the list of all of a kind, and the first objects of it.
func (e *Env) listed(ctx context.Context, r resource, list, one string, options ...option) error {
	rv, err := e.at(ctx, r.all(), 0)
	if err != nil {
		return err
	}
	errs := []error{e.same(ctx, r.all()+"?"+exactly(rv), append(options, accept(list), ageing, code(200))...)}
	for _, path := range r.still() {
		a, err := e.Want.Do(ctx, compare.Request{Path: path + "limit=3"})
		if err != nil {
			return err
		}
		l, err := readList(a)
		if err != nil {
			return err
		}
		collection, _, _ := strings.Cut(path, "?")
		for _, i := range l.Items {
			errs = append(errs, e.same(ctx, collection+"/"+url.PathEscape(i.Metadata.Name)+anyVersion, append(options, accept(one), ageing, code(200))...))
		}
	}
	return errors.Join(errs...)
}

// EveryKindInJSON: §5, lists and objects of every kind there is.
func EveryKindInJSON(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error { return e.listed(ctx, r, compare.JSON, compare.JSON) })
}

// EveryKindInProtobuf: §5, the built-in ones in protobuf.
func EveryKindInProtobuf(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error {
		if r.custom() {
			return nil
		}
		return e.listed(ctx, r, compare.Protobuf, compare.Protobuf, contentType(compare.Protobuf))
	})
}

// EveryKindInYAML: §5, in YAML.
func EveryKindInYAML(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error { return e.listed(ctx, r, compare.YAML, compare.YAML) })
}

// EveryKindAsTable: §5, as Tables.
func EveryKindAsTable(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error { return e.listed(ctx, r, tableV1, tableV1) })
}

// EveryKindAsMetadata: §5, as metadata, in JSON and in protobuf.
func EveryKindAsMetadata(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error {
		return errors.Join(
			e.listed(ctx, r, metadataList, metadata),
			e.listed(ctx, r, metadataListProtobuf, metadataProtobuf))
	})
}

// watched compares a short watch of a kind from its initial state on, with the
// end bookmark.
func (e *Env) watched(ctx context.Context, r resource, media, framing string) error {
	if _, err := e.at(ctx, r.all(), 0); err != nil {
		return err
	}
	var errs []error
	for _, path := range r.still() {
		errs = append(errs, e.same(ctx, path+"watch=1&allowWatchBookmarks=1&timeoutSeconds=2&resourceVersion=0", accept(media), ageing,
			code(200), contentType(framing), mask(withoutBookmarks(framing)), mask(ages)))
	}
	return errors.Join(errs...)
}

// withoutBookmarks is noBookmarks for any framing.
func withoutBookmarks(framing string) compare.Mask {
	return func(body []byte) []byte {
		frames, err := compare.Frames(framing, body)
		if err != nil {
			return body
		}
		var out []byte
		for _, f := range frames {
			if f.Type != "BOOKMARK" || f.EndsInitial() {
				out = append(out, f.Raw...)
			}
		}
		return compare.Bookmarks(framing)(out)
	}
}

// EveryKindWatchedInJSON: §5, a watch of every kind there is, with its
// bookmark.
func EveryKindWatchedInJSON(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error { return e.watched(ctx, r, compare.JSON, compare.JSON) })
}

// EveryKindWatchedInProtobuf: §5, the built-in ones in protobuf.
func EveryKindWatchedInProtobuf(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error {
		if r.custom() {
			return nil
		}
		return e.watched(ctx, r, compare.Protobuf, compare.ProtobufWatch)
	})
}

// EveryKindWatchedAsTable: §5, as Tables.
func EveryKindWatchedAsTable(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error { return e.watched(ctx, r, tableV1, compare.JSON) })
}

// EveryKindWatchedAsMetadata: §5, as metadata in protobuf.
func EveryKindWatchedAsMetadata(ctx context.Context, e *Env) error {
	return e.everyKind(ctx, func(r resource) error { return e.watched(ctx, r, metadataProtobuf, compare.ProtobufWatch) })
}
