// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const finalizer = "clients.example.com/keeper"

// A keeper is a reconciler. For each widget (unstructured in its cache) it keeps a
// ConfigMap (typed) with the widget's size and the names of the secrets labelled with
// the widget's name (metadata only), and reports this in the widget's status. With a
// finalizer it deletes the ConfigMap before the widget.
type keeper struct{ client.Client }

func (k *keeper) setUp(mgr ctrl.Manager) error {
	byLabel := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()["widget"]}}}
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(newWidget("", "", 0)).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(byLabel), builder.OnlyMetadata).
		Complete(k)
}

func (k *keeper) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	w := newWidget("", "", 0)
	if err := k.Get(ctx, req.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if w.GetDeletionTimestamp() != nil {
		if err := k.Delete(ctx, own); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if controllerutil.RemoveFinalizer(w, finalizer) {
			return reconcile.Result{}, client.IgnoreNotFound(k.Update(ctx, w))
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		return reconcile.Result{}, k.Update(ctx, w) // the event triggers another reconcile
	}
	data, err := k.data(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	if _, err := controllerutil.CreateOrUpdate(ctx, k.Client, own, func() error {
		own.Data = data
		return controllerutil.SetControllerReference(w, own, k.Scheme())
	}); err != nil {
		return reconcile.Result{}, err
	}
	status := map[string]any{"size": w.Object["spec"].(object)["size"], "message": data["secrets"]}
	if held, _, _ := unstructured.NestedMap(w.Object, "status"); maps.Equal(held, status) {
		return reconcile.Result{}, nil
	}
	w.Object["status"] = status
	return reconcile.Result{}, k.Status().Update(ctx, w)
}

// data returns the data that the widget's ConfigMap has to have.
func (k *keeper) data(ctx context.Context, w *unstructured.Unstructured) (map[string]string, error) {
	secrets := secretList()
	if err := k.List(ctx, secrets, client.InNamespace(w.GetNamespace()), client.MatchingLabels{"widget": w.GetName()}); err != nil {
		return nil, err
	}
	var names []string
	for _, s := range secrets.Items {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return map[string]string{"size": fmt.Sprint(w.Object["spec"].(object)["size"]), "secrets": strings.Join(names, " ")}, nil
}

func secretList() *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return l
}

func eachItem(list client.ObjectList, do func(client.Object)) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		o, ok := item.(client.Object)
		if !ok {
			return errors.New("an item without metadata")
		}
		do(o)
		return nil
	})
}
