// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// finalizer is kept by a Widget until its ConfigMap is deleted.
const finalizer = "example.com/widget"

// A reconciler reads from the manager's cache and writes to the API server.
type reconciler struct{ client.Client }

// Reconcile creates, repairs and deletes the ConfigMap of a Widget.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return result, client.IgnoreNotFound(err)
	}
	before := w.DeepCopy()
	locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}) // fails if the Widget has changed
	if !w.DeletionTimestamp.IsZero() {
		if !controllerutil.RemoveFinalizer(w, finalizer) {
			return result, nil
		}
		if err := r.release(ctx, before); err != nil {
			return result, err
		}
		return result, r.Patch(ctx, w, locked)
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		return result, r.Patch(ctx, w, locked)
	}
	if w.Spec.TTL != nil {
		// After the TTL, the function is called again.
		if result.RequeueAfter = time.Until(w.CreationTimestamp.Add(w.Spec.TTL.Duration)); result.RequeueAfter <= 0 {
			return ctrl.Result{}, r.Delete(ctx, w, client.Preconditions{UID: &w.UID})
		}
	}
	err = r.apply(ctx, w)
	if status := (Status{Ready: err == nil, ObservedGeneration: w.Generation}); w.Status != status {
		w.Status = status
		if err := r.Status().Patch(ctx, w, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

// apply creates the ConfigMap, or updates the one that exists.
func (r *reconciler) apply(ctx context.Context, w *Widget) error {
	m := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKeyFromObject(w), m)
	switch {
	case apierrors.IsNotFound(err):
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Data: w.Spec.Data}
		if err := controllerutil.SetControllerReference(w, m, r.Scheme()); err != nil {
			return err
		}
		return r.Create(ctx, m)
	case err != nil:
		return err
	case !metav1.IsControlledBy(m, w):
		return fmt.Errorf("the ConfigMap %s is not the Widget's", m.Name)
	case !maps.Equal(m.Data, w.Spec.Data):
		m.Data = w.Spec.Data
		return r.Update(ctx, m) // fails if it has changed
	}
	return nil
}

// release deletes the ConfigMap of a Widget. One that the cache does not have yet is
// deleted by the garbage collector.
func (r *reconciler) release(ctx context.Context, w *Widget) error {
	m := &corev1.ConfigMap{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(w), m); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(m, w) {
		return nil
	}
	return client.IgnoreNotFound(r.Delete(ctx, m, client.Preconditions{UID: &m.UID}))
}
