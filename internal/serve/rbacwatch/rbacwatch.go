// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbacwatch watches the objects that give rights, and the owners of tokens, and
// hints at the rights and credentials that may have changed. A hint is never a decision:
// the API server is asked again.
//
//	Role, ClusterRole                 the subjects of the bindings to it
//	RoleBinding, ClusterRoleBinding   its subjects, before and after the change
//	ServiceAccount                    its tokens, when it is deleted
//	Pod                               the tokens bound to it, when it is deleted
//
// Without the right to watch one of these, its hints are missing, and rights are checked
// every minute only.
package rbacwatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/access"
	"github.com/watchkeeper/watchkeeper/internal/cluster/watchcache"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

var (
	roles               = kube.Resource{Group: rbacv1.GroupName, Version: "v1", Name: "roles"}
	clusterRoles        = kube.Resource{Group: rbacv1.GroupName, Version: "v1", Name: "clusterroles"}
	roleBindings        = kube.Resource{Group: rbacv1.GroupName, Version: "v1", Name: "rolebindings"}
	clusterRoleBindings = kube.Resource{Group: rbacv1.GroupName, Version: "v1", Name: "clusterrolebindings"}
	serviceAccounts     = kube.Resource{Version: "v1", Name: "serviceaccounts"}
	pods                = kube.Resource{Version: "v1", Name: "pods"}
)

const (
	// retryInterval is the time between two attempts to watch a resource.
	retryInterval = 10 * time.Second
	// wantedInterval is how often it is checked whether a resource is wanted.
	wantedInterval = time.Second
	// podLinger is how long Pods are watched after the last token that is bound to one.
	podLinger = 10 * time.Minute
)

// A Watcher gives hints.
type Watcher struct {
	Cache *watchcache.Cache
	// Hint takes a hint. It is called concurrently.
	Hint func(access.Hint)
	// PodTokens reports whether there are tokens that are bound to a Pod. Without any, Pods
	// are not watched.
	PodTokens func() bool
	Logger    *slog.Logger
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	always := func() bool { return true }
	accounts := []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: serviceaccount.AllServiceAccountsGroup}}
	var running sync.WaitGroup
	for _, f := range []struct {
		id      kube.Resource
		on      func(*timeline.Event)
		while   func() bool
		missing access.Hint // the hint after a pause, in which events were missed
	}{
		{roles, w.role, always, access.Hint{}},
		{clusterRoles, w.clusterRole, always, access.Hint{}},
		{roleBindings, w.roleBinding, always, access.Hint{}},
		{clusterRoleBindings, w.clusterRoleBinding, always, access.Hint{}},
		{serviceAccounts, w.serviceAccount, always, access.Hint{Credentials: true, Subjects: accounts}},
		{pods, w.pod, w.podTokens(), access.Hint{Credentials: true, PodUID: access.AnyPod}},
	} {
		running.Go(func() {
			// Pods are first watched some seconds after the first token that is bound to one.
			for again := f.id == pods; ctx.Err() == nil; {
				pause := wantedInterval
				if f.while() {
					pause = retryInterval
					w.follow(ctx, f.id, f.on, f.while, func() {
						if again {
							w.Hint(f.missing)
						}
						again = true
					})
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	running.Wait()
}

// podTokens returns a function that reports whether there was a token bound to a Pod in
// the last minutes. Pods are many, and are not watched anew for each short watch.
func (w *Watcher) podTokens() func() bool {
	var last time.Time
	return func() bool {
		if w.PodTokens() {
			last = time.Now()
		}
		return time.Since(last) < podLinger
	}
}

// follow calls on with the events of a resource until it is no longer watched or wanted.
// It calls begun when the first event cannot be missed any more.
func (w *Watcher) follow(ctx context.Context, id kube.Resource, on func(*timeline.Event), while func() bool, begun func()) {
	res := w.Cache.Acquire(ctx, id)
	if res == nil {
		w.Logger.Debug("no hints at changed rights", "resource", id.String())
		return
	}
	defer res.Release()
	if !res.WaitSynced(ctx) {
		return
	}
	view := res.Timeline.View()
	if view == nil {
		return
	}
	cursor, err := res.Timeline.WatchFrom(view, view.RV, timeline.Interest{})
	if err != nil {
		return
	}
	defer cursor.Close()
	begun()
	check := time.NewTicker(retryInterval)
	defer check.Stop()
	for {
		batch, err := cursor.Next()
		if err != nil {
			return
		}
		for _, e := range batch.Events {
			on(e)
		}
		if batch.More {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-cursor.Ready():
		case <-check.C:
			if !while() {
				return
			}
		}
	}
}

// A binding is what RoleBindings and ClusterRoleBindings have in common.
type binding struct {
	Subjects []rbacv1.Subject `json:"subjects"`
	RoleRef  rbacv1.RoleRef   `json:"roleRef"`
}

// read returns the binding of an object; everybody is a subject of one that cannot be
// read.
func read(o *scan.Object) (b binding, ok bool) {
	return b, json.Unmarshal([]byte(o.JSON), &b) == nil
}

func (w *Watcher) roleBinding(e *timeline.Event)        { w.bindingChanged(e, e.Object.Key.Namespace()) }
func (w *Watcher) clusterRoleBinding(e *timeline.Event) { w.bindingChanged(e, "") }

func (w *Watcher) bindingChanged(e *timeline.Event, namespace string) {
	subjects := []rbacv1.Subject{}
	for _, o := range []*scan.Object{e.Prev, e.Object} {
		if o == nil {
			continue
		}
		b, ok := read(o)
		if !ok {
			w.Hint(access.Hint{Namespace: namespace})
			return
		}
		subjects = append(subjects, b.Subjects...)
	}
	w.Hint(access.Hint{Subjects: distinct(subjects), Namespace: namespace})
}

func (w *Watcher) role(e *timeline.Event) {
	namespace, name := e.Object.Key.Namespace(), e.Object.Key.Name()
	w.hintBound(roleBindings, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name})
}

func (w *Watcher) clusterRole(e *timeline.Event) {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: e.Object.Key.Name()}
	w.hintBound(clusterRoleBindings, "", ref)
	w.hintBound(roleBindings, "", ref)
}

// hintBound hints at the subjects of the bindings to a role: in a namespace, or in all.
func (w *Watcher) hintBound(id kube.Resource, namespace string, ref rbacv1.RoleRef) {
	var view *timeline.View
	if res := w.Cache.Watched(id); res != nil {
		view = res.Timeline.View()
	}
	if view == nil {
		w.Hint(access.Hint{Namespace: namespace})
		return
	}
	subjects := map[string][]rbacv1.Subject{}
	for o := range view.All(namespace, "") {
		if b, ok := read(o); ok && b.RoleRef == ref {
			subjects[o.Key.Namespace()] = append(subjects[o.Key.Namespace()], b.Subjects...)
		}
	}
	for in, all := range subjects {
		w.Hint(access.Hint{Subjects: distinct(all), Namespace: in})
	}
}

// distinct returns each subject once, and never nil.
func distinct(all []rbacv1.Subject) []rbacv1.Subject {
	seen := make(map[rbacv1.Subject]bool, len(all))
	return slices.DeleteFunc(append([]rbacv1.Subject{}, all...), func(s rbacv1.Subject) bool {
		was := seen[s]
		seen[s] = true
		return was
	})
}

func (w *Watcher) serviceAccount(e *timeline.Event) {
	if e.Type != kube.Deleted && (e.Prev == nil || e.Prev.UID == e.Object.UID) {
		return
	}
	w.Hint(access.Hint{Credentials: true, Subjects: []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: e.Object.Key.Namespace(), Name: e.Object.Key.Name()},
	}})
}

func (w *Watcher) pod(e *timeline.Event) {
	if e.Type == kube.Deleted {
		w.Hint(access.Hint{Credentials: true, PodUID: e.Object.UID})
	}
}
