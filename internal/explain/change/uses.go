// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Used names an object that a Pod uses, in its namespace.
type Used struct{ Kind, Name string }

// Uses returns the ConfigMaps, Secrets and PersistentVolumeClaims that a Pod's spec names, each
// once, without the ones that every Pod has.
func Uses(spec *corev1.PodSpec) (all []Used) {
	add := func(kind, name string) {
		if u := (Used{kind, name}); name != "" && name != "kube-root-ca.crt" && !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	for _, v := range spec.Volumes {
		if s := v.ConfigMap; s != nil {
			add("ConfigMap", s.Name)
		}
		if s := v.Secret; s != nil {
			add("Secret", s.SecretName)
		}
		if s := v.PersistentVolumeClaim; s != nil {
			add("PersistentVolumeClaim", s.ClaimName)
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add("ConfigMap", s.ConfigMap.Name)
			}
			if s.Secret != nil {
				add("Secret", s.Secret.Name)
			}
		}
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, from := range c.EnvFrom {
			if s := from.ConfigMapRef; s != nil {
				add("ConfigMap", s.Name)
			}
			if s := from.SecretRef; s != nil {
				add("Secret", s.Name)
			}
		}
		for _, env := range c.Env {
			if env.ValueFrom == nil {
				continue
			}
			if s := env.ValueFrom.ConfigMapKeyRef; s != nil {
				add("ConfigMap", s.Name)
			}
			if s := env.ValueFrom.SecretKeyRef; s != nil {
				add("Secret", s.Name)
			}
		}
	}
	for _, s := range spec.ImagePullSecrets {
		add("Secret", s.Name)
	}
	return all
}
