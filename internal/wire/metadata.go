// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// inFields are the annotations that the API server keeps in fields of its
// internal version of an object, and adds when it writes a version that lacks
// those fields. Tables and metadata it makes from the internal version, which
// does not have the annotations.
var inFields = map[string][]string{
	"daemonsets.apps":  {"deprecated.daemonset.template.generation"},
	"deployments.apps": {"deprecated.deployment.rollback.to"},
	"horizontalpodautoscalers.autoscaling": {
		"autoscaling.alpha.kubernetes.io/metrics",
		"autoscaling.alpha.kubernetes.io/current-metrics",
		"autoscaling.alpha.kubernetes.io/conditions",
		"autoscaling.alpha.kubernetes.io/behavior",
		"autoscaling.alpha.kubernetes.io/scale-down-tolerance",
		"autoscaling.alpha.kubernetes.io/scale-up-tolerance",
	},
}

// metadataJSON returns metadata as the API server's own types have it, which
// custom resources do not.
func (e *Encoder) metadataJSON(o *scan.Object) (string, error) {
	if o.Typed() && len(e.hidden(o)) == 0 {
		_, text, _ := o.Metadata()
		return text, nil
	}
	return e.Cache.get(o, asMetadataJSON, func(o *scan.Object) (string, error) {
		meta, err := e.metadata(o)
		if err != nil {
			return "", err
		}
		return marshal(meta), nil
	})
}

// metadata decodes what an object's metadata is in Tables and by itself. A
// field that is not known here is ErrForm.
func (e *Encoder) metadata(o *scan.Object) (*metav1.ObjectMeta, error) {
	_, text, _ := o.Metadata()
	var meta metav1.ObjectMeta
	if err := decodeStrict(text, &meta); err != nil {
		return nil, err
	}
	for _, name := range e.hidden(o) {
		delete(meta.Annotations, name)
	}
	return &meta, nil
}

// hidden returns the annotations that the object's metadata does not have.
func (e *Encoder) hidden(o *scan.Object) (names []string) {
	for _, name := range inFields[e.Resource.GroupResource()] {
		if strings.Contains(o.Annotations(), name) {
			names = append(names, name)
		}
	}
	return names
}
