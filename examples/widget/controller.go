// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/reconcile"
)

// finalizer is kept by a Widget until its ConfigMap is deleted.
const finalizer = "example.com/widget"

type object = map[string]any

// A reconciler reads from informers and writes by client-go.
type reconciler struct {
	widgets    *informer.Informer[*Widget]
	configMaps *informer.Informer[*corev1.ConfigMap]
	dynamic    dynamic.NamespaceableResourceInterface
	typed      typed.ConfigMapsGetter
}

// reconcile creates, repairs and deletes the ConfigMap of a Widget.
func (r *reconciler) reconcile(ctx context.Context, key informer.Key) (result reconcile.Result, err error) {
	ref, exists := r.widgets.Get(key)
	if !exists {
		return result, nil
	}
	w, err := ref.Object()
	if err != nil {
		return result, &reconcile.TerminalError{Err: err}
	}
	m, exists := r.configMaps.Get(key)
	have, err := m.Object()
	if err != nil && exists {
		return result, &reconcile.TerminalError{Err: err}
	}
	at := slices.Index(w.Finalizers, finalizer)
	switch {
	case w.DeletionTimestamp != nil && at >= 0:
		// One that the copy does not have yet is deleted by the garbage collector.
		if exists && metav1.IsControlledBy(have, w) {
			err := r.typed.ConfigMaps(w.Namespace).Delete(ctx, w.Name, *metav1.NewPreconditionDeleteOptions(string(have.UID)))
			if err != nil && !apierrors.IsNotFound(err) {
				return result, err
			}
		}
		return result, r.setFinalizers(ctx, w, slices.Delete(slices.Clone(w.Finalizers), at, at+1))
	case w.DeletionTimestamp != nil:
		return result, nil
	case at < 0:
		return result, r.setFinalizers(ctx, w, append(slices.Clone(w.Finalizers), finalizer))
	case w.Spec.TTL != nil:
		// After the TTL, the function is called again.
		if result.After = time.Until(w.CreationTimestamp.Add(w.Spec.TTL.Duration)); result.After <= 0 {
			return result, r.dynamic.Namespace(w.Namespace).Delete(ctx, w.Name, *metav1.NewPreconditionDeleteOptions(string(w.UID)))
		}
	}
	err = r.apply(ctx, w, have)
	if ready := err == nil; w.Status.Ready != ready || w.Status.ObservedGeneration != w.Generation {
		if err := r.patch(ctx, w, object{"status": object{"ready": ready, "observedGeneration": w.Generation}}, "status"); err != nil {
			return result, err
		}
	}
	return result, err
}

// apply creates the ConfigMap, or updates the one that exists, nil for none.
func (r *reconciler) apply(ctx context.Context, w *Widget, have *corev1.ConfigMap) (err error) {
	want := &corev1.ConfigMap{Data: w.Spec.Data, ObjectMeta: metav1.ObjectMeta{Name: w.Name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w, kind)}}}
	switch {
	case have == nil:
		_, err = r.typed.ConfigMaps(w.Namespace).Create(ctx, want, metav1.CreateOptions{})
	case !metav1.IsControlledBy(have, w):
		err = fmt.Errorf("the ConfigMap %s is not the Widget's", have.Name)
	case !maps.Equal(have.Data, want.Data):
		want.ResourceVersion = have.ResourceVersion // fails if it has changed
		_, err = r.typed.ConfigMaps(w.Namespace).Update(ctx, want, metav1.UpdateOptions{})
	}
	return err
}

// setFinalizers fails if the Widget has changed.
func (r *reconciler) setFinalizers(ctx context.Context, w *Widget, all []string) error {
	return r.patch(ctx, w, object{"metadata": object{"resourceVersion": w.ResourceVersion, "finalizers": all}})
}

func (r *reconciler) patch(ctx context.Context, w *Widget, change object, subresources ...string) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = r.dynamic.Namespace(w.Namespace).Patch(ctx, w.Name, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	return err
}
