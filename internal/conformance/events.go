// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

var eventRules = rules("§4",
	LabelTransitions, FieldTransitions, PodTransitions, NameTransitions, LeavingIsThePreviousObject,
	DeletionHasItsOwnVersion, Recreation, NoEventForNoChange, Finalizers, VersionsIncrease,
	OrderAcrossNamespaces, InitialOrder,
)

// selected opens a watch of a collection at both endpoints, makes the changes,
// and compares all events. The last change is the last event.
func (e *Env) selected(ctx context.Context, path, query string, changes []step, want ...string) ([]compare.Frame, error) {
	w, err := e.watch(ctx, path+"?watch=1&"+query)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := e.steps(ctx, changes...); err != nil {
		return nil, err
	}
	all, err := w.Until(ctx, count(len(want)))
	if err != nil {
		return nil, err
	}
	return all, sequence(all, want...)
}

// workshop is a namespace for doodads, and the RV to watch them from.
func (e *Env) workshop(ctx context.Context) (path, rv string, err error) {
	space, err := e.scratch(ctx)
	if err != nil {
		return "", "", err
	}
	path = doodads(space)
	made, err := e.create(ctx, path, doodad("first", `"spec":{}`))
	if err != nil {
		return "", "", err
	}
	rv, err = e.at(ctx, path, made)
	return path, rv, err
}

func labelled(value string) string { return `{"metadata":{"labels":{"on":` + value + `}}}` }

// LabelTransitions: §4, the table of transitions by a label selector: an update
// may be ADDED, MODIFIED, DELETED or nothing.
func LabelTransitions(ctx context.Context, e *Env) error {
	path, rv, err := e.workshop(ctx)
	if err != nil {
		return err
	}
	changes := []step{
		{http.MethodPost, path, doodad("x", `"spec":{"size":0}`)}, // nothing
		{http.MethodPatch, path + "/x", `{"spec":{"size":1}}`},    // nothing
		{http.MethodPatch, path + "/x", labelled(`"yes"`)},        // ADDED
		{http.MethodPatch, path + "/x", `{"spec":{"size":2}}`},    // MODIFIED
		{http.MethodPatch, path + "/x", labelled(`"no"`)},         // DELETED
		{http.MethodPatch, path + "/x", `{"spec":{"size":3}}`},    // nothing
		{http.MethodPatch, path + "/x", labelled(`"yes"`)},        // ADDED
		{http.MethodDelete, path + "/x", ""},                      // DELETED
		{http.MethodPost, path, doodad("x", `"spec":{}`)},         // nothing
		{http.MethodDelete, path + "/x", ""},                      // nothing
		{http.MethodPatch, path + "/first", labelled(`"yes"`)},    // ADDED
	}
	want := []string{"ADDED x", "MODIFIED x", "DELETED x", "ADDED x", "DELETED x", "ADDED first"}
	if _, err := e.selected(ctx, path, "labelSelector=on=yes&resourceVersion="+rv, changes, want...); err != nil {
		return err
	}
	// The same from history, at the cluster, and with the selector turned round.
	if _, err := e.selected(ctx, custom+"doodads", "labelSelector=on=yes&resourceVersion="+rv, nil, want...); err != nil {
		return err
	}
	_, err = e.selected(ctx, path, "labelSelector=on!=yes&resourceVersion="+rv, nil,
		"ADDED x", "MODIFIED x", "DELETED x", "ADDED x", "MODIFIED x", "DELETED x", "ADDED x", "DELETED x", "DELETED first")
	return err
}

// FieldTransitions: §4, the table of transitions by a field selector.
func FieldTransitions(ctx context.Context, e *Env) error {
	path, rv, err := e.workshop(ctx)
	if err != nil {
		return err
	}
	_, err = e.selected(ctx, path, "fieldSelector=spec.color=red&resourceVersion="+rv, []step{
		{http.MethodPost, path, doodad("x", `"spec":{"color":"red"}`)},
		{http.MethodPatch, path + "/x", `{"spec":{"size":1}}`},
		{http.MethodPatch, path + "/x", `{"spec":{"color":"blue"}}`},
		{http.MethodPatch, path + "/x", `{"spec":{"color":null}}`},
		{http.MethodPatch, path + "/x", `{"spec":{"color":"red"}}`},
		{http.MethodDelete, path + "/x", ""},
	}, "ADDED x", "MODIFIED x", "DELETED x", "ADDED x", "DELETED x")
	if err != nil {
		return err
	}
	_, err = e.selected(ctx, path, "fieldSelector="+url.QueryEscape("spec.color=,metadata.name=x")+"&resourceVersion="+rv, nil, "ADDED x", "DELETED x")
	return err
}

// PodTransitions: §4, transitions by the fields of a Pod, which its status
// changes.
func PodTransitions(ctx context.Context, e *Env) error {
	space, err := e.scratch(ctx)
	if err != nil {
		return err
	}
	path := "/api/v1/namespaces/" + space + "/pods"
	made, err := e.create(ctx, path, pod("x"))
	if err != nil {
		return err
	}
	rv, err := e.at(ctx, path, made)
	if err != nil {
		return err
	}
	changes := []step{
		{http.MethodPatch, path + "/x/status", `{"status":{"phase":"Running","podIPs":[{"ip":"10.9.8.7"}],"podIP":"10.9.8.7"}}`},
		{http.MethodPatch, path + "/x/status", `{"status":{"message":"hello"}}`},
		{http.MethodPatch, path + "/x/status", `{"status":{"phase":"Succeeded"}}`},
		{http.MethodDelete, path + "/x?gracePeriodSeconds=0", ""},
	}
	if _, err := e.selected(ctx, path, "fieldSelector=status.phase=Running&resourceVersion="+rv, changes, "ADDED x", "MODIFIED x", "DELETED x"); err != nil {
		return err
	}
	w, err := e.watch(ctx, "/api/v1/pods?watch=1&fieldSelector="+url.QueryEscape("status.podIP=10.9.8.7")+"&resourceVersion="+rv)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = w.Until(ctx, func(all []compare.Frame) bool { return all[len(all)-1].Type == "DELETED" })
	return err
}

// pod is a Pod that nobody schedules.
func pod(name string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"schedulerName":"nobody","containers":[{"name":"c","image":"i"}]}}`
}

// NameTransitions: §4, a watch of one name gets that object's events.
func NameTransitions(ctx context.Context, e *Env) error {
	path, rv, err := e.workshop(ctx)
	if err != nil {
		return err
	}
	changes := []step{
		{http.MethodPost, path, doodad("x", `"spec":{}`)},
		{http.MethodPost, path, doodad("y", `"spec":{}`)},
		{http.MethodPatch, path + "/y", `{"spec":{"size":1}}`},
		{http.MethodPatch, path + "/x", `{"spec":{"size":1}}`},
		{http.MethodDelete, path + "/x", ""},
		{http.MethodDelete, path + "/y", ""},
	}
	if _, err := e.selected(ctx, path, "fieldSelector=metadata.name=y&resourceVersion="+rv, changes, "ADDED y", "MODIFIED y", "DELETED y"); err != nil {
		return err
	}
	_, err = e.selected(ctx, path, "fieldSelector=metadata.name!=y&resourceVersion="+rv, nil, "ADDED x", "MODIFIED x", "DELETED x")
	return err
}

// LeavingIsThePreviousObject: §4, an object that stops to match is DELETED with
// its last matching state, at the RV of the change.
func LeavingIsThePreviousObject(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	w, err := e.watch(ctx, p.path+"?watch=1&labelSelector=on=yes&resourceVersion="+p.rv)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := e.patch(ctx, p.path+"/a", `{"metadata":{"labels":{"on":"yes"}},"data":{"state":"before"}}`); err != nil {
		return err
	}
	left, err := e.patch(ctx, p.path+"/a", `{"metadata":{"labels":{"on":null}},"data":{"state":"after"}}`)
	if err != nil {
		return err
	}
	frames, err := w.Until(ctx, count(2))
	if err != nil {
		return err
	}
	last := frames[1]
	if last.Type != "DELETED" || last.RV != strconv.FormatUint(left, 10) {
		return fmt.Errorf("the API server: %v, not DELETED at %d", last, left)
	}
	if text := string(last.Object); !strings.Contains(text, `"state":"before"`) || !strings.Contains(text, `"on":"yes"`) {
		return fmt.Errorf("the API server: what left is %s", text)
	}
	return nil
}

// DeletionHasItsOwnVersion: §4, a deletion is DELETED with the last stored
// object at an RV of its own.
func DeletionHasItsOwnVersion(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	frames, err := e.selected(ctx, p.path, "resourceVersion="+p.rv, []step{
		{http.MethodPatch, p.path + "/a", `{"data":{"state":"last"}}`},
		{http.MethodDelete, p.path + "/a", ""},
	}, "MODIFIED a", "DELETED a")
	if err != nil {
		return err
	}
	if !strings.Contains(string(frames[1].Object), `"state":"last"`) || frames[0].RV == frames[1].RV {
		return fmt.Errorf("the API server: %s after %v", frames[1].Object, &frames[0])
	}
	return nil
}

// Recreation: §4, an object that comes back under its name is another one.
func Recreation(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	var changes []step
	var want []string
	for range 3 {
		changes = append(changes, step{http.MethodDelete, p.path + "/a", ""}, step{http.MethodPost, p.path, `{"metadata":{"name":"a"}}`})
		want = append(want, "DELETED a", "ADDED a")
	}
	return e.live(ctx, p, "resourceVersion="+p.rv, changes, want...)
}

// NoEventForNoChange: §4, an update that changes nothing is no event.
func NoEventForNoChange(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	return e.live(ctx, p, "resourceVersion="+p.rv, []step{
		{http.MethodPatch, p.path + "/a", `{"data":{"x":"y"}}`},
		{http.MethodPatch, p.path + "/a", `{"data":{"x":"y"}}`},
		{http.MethodPatch, p.path + "/a?dryRun=All", `{"data":{"x":"z"}}`},
		{http.MethodPatch, p.path + "/b", `{}`},
	}, "MODIFIED a")
}

// Finalizers: §4, an object with a finalizer is MODIFIED when it is deleted, and
// DELETED when the finalizer goes.
func Finalizers(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	frames, err := e.selected(ctx, p.path, "resourceVersion="+p.rv, []step{
		{http.MethodPatch, p.path + "/a", `{"metadata":{"finalizers":["conformance.example.com/stay"]}}`},
		{http.MethodDelete, p.path + "/a", ""},
		{http.MethodPatch, p.path + "/a", `{"metadata":{"finalizers":null}}`},
	}, "MODIFIED a", "MODIFIED a", "DELETED a")
	if err != nil {
		return err
	}
	if !strings.Contains(string(frames[1].Object), "deletionTimestamp") {
		return fmt.Errorf("the API server: no deletionTimestamp in %s", frames[1].Object)
	}
	return nil
}

// VersionsIncrease: §4, the RVs of a stream strictly increase, each object's
// own as well, and one can resume from each of them.
func VersionsIncrease(ctx context.Context, e *Env) error {
	p, err := e.playground(ctx)
	if err != nil {
		return err
	}
	var changes []step
	for i := range 10 {
		for _, name := range []string{"a", "b"} {
			changes = append(changes, step{http.MethodPatch, p.path + "/" + name, fmt.Sprintf(`{"data":{"n":"%d"}}`, i)})
		}
	}
	changes = append(changes, p.mark())
	w, err := e.watch(ctx, p.path+"?watch=1&resourceVersion="+p.rv)
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := e.steps(ctx, changes...); err != nil {
		return err
	}
	frames, err := w.Until(ctx, marked)
	if err != nil {
		return err
	}
	if len(frames) != len(changes) {
		return fmt.Errorf("the API server: %d events of %d changes", len(frames), len(changes))
	}
	last := uint64(0)
	for i, f := range frames {
		rv, err := strconv.ParseUint(f.RV, 10, 64)
		if err != nil || rv <= last {
			return fmt.Errorf("the API server: event %d is at %s, after %d: %w", i, f.RV, last, err)
		}
		last = rv
	}
	return e.same(ctx, p.path+"?watch=1&timeoutSeconds=1&resourceVersion="+frames[7].RV, code(200), has("z-mark"))
}

// OrderAcrossNamespaces: §4, all watchers see one order: a watch of all
// namespaces, under changes in two of them.
func OrderAcrossNamespaces(ctx context.Context, e *Env) error {
	path, rv, err := e.workshop(ctx)
	if err != nil {
		return err
	}
	other := doodads("conf-b")
	if _, err := e.create(ctx, other, doodad("across", `"spec":{}`)); err != nil {
		return err
	}
	for i := range 10 {
		n := fmt.Sprintf(`{"metadata":{"labels":{"across":"%d"}}}`, i)
		if _, err := e.steps(ctx, step{http.MethodPatch, path + "/first", n}, step{http.MethodPatch, other + "/across", n}); err != nil {
			return err
		}
	}
	// Other rules change doodads as well: all of it is compared.
	w, err := e.watch(ctx, custom+"doodads?watch=1&resourceVersion="+rv)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = w.Until(ctx, func(all []compare.Frame) bool {
		f := all[len(all)-1]
		return f.Name == "across" && strings.Contains(string(f.Object), `"across":"9"`)
	})
	return err
}

// InitialOrder: §4, initial events come in the order of a list, not of their
// RVs, each with its own; then the end bookmark; then what is new.
func InitialOrder(ctx context.Context, e *Env) error {
	path, _, err := e.workshop(ctx)
	if err != nil {
		return err
	}
	rv, err := e.steps(ctx,
		step{http.MethodPost, path, doodad("b", `"spec":{}`)},
		step{http.MethodPost, path, doodad("a", `"spec":{}`)},
		step{http.MethodPatch, path + "/first", `{"spec":{"size":7}}`})
	if err != nil {
		return err
	}
	if _, err := e.at(ctx, path, rv); err != nil {
		return err
	}
	for _, query := range []string{"resourceVersion=0", "", "resourceVersion=" + strconv.FormatUint(rv, 10) + initialEvents} {
		_, err := e.selected(ctx, path, "allowWatchBookmarks=1&"+query, []step{
			{http.MethodPost, path, doodad("0-new", `"spec":{}`)},
			{http.MethodDelete, path + "/0-new", ""},
		}, "ADDED a", "ADDED b", "ADDED first", "BOOKMARK end", "ADDED 0-new", "DELETED 0-new")
		if err != nil {
			return err
		}
		// The next one begins when this is past.
		if _, err := e.patch(ctx, path+"/a", `{"metadata":{"labels":{"q":"q`+strconv.Itoa(len(query))+`"}}}`); err != nil {
			return err
		}
		a, err := e.Want.Do(ctx, compare.Request{Path: path + "/a"})
		if err != nil {
			return err
		}
		if rv, err = rvOf(a.Body); err != nil {
			return err
		}
		if _, err := e.at(ctx, path, rv); err != nil {
			return err
		}
	}
	return nil
}
