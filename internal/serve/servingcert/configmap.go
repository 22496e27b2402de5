// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// publishInterval is the time between the writes of a CA. One that changes nothing costs
// the API server a read.
const publishInterval = time.Minute

// PublishCA keeps the CA that ca returns as ca.crt in a ConfigMap, until ctx ends. Its other
// data stay. What fails is told to failed, and the next write comes a minute later.
func PublishCA(ctx context.Context, api corev1client.ConfigMapsGetter, ref types.NamespacedName, ca func() ([]byte, error), failed Failed) {
	ticker := time.NewTicker(publishInterval)
	defer ticker.Stop()
	for {
		if err := publishCA(ctx, api, ref, ca); err != nil && ctx.Err() == nil {
			failed("the CA is not published: clients cannot verify the gateway with it", "configmap", ref, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func publishCA(ctx context.Context, api corev1client.ConfigMapsGetter, ref types.NamespacedName, ca func() ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	crt, err := ca()
	if err != nil {
		return err
	}
	data := map[string]string{caFile: string(crt)}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	configMaps := api.ConfigMaps(ref.Namespace)
	_, err = configMaps.Patch(ctx, ref.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ref.Name}, Data: data}, metav1.CreateOptions{})
		return withHint(err, "create the ConfigMap, which the gateway may patch")
	}
	return withHint(err, "the gateway needs patch on it")
}
