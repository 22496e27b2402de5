// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// derivedAnnotations are those that the API server keeps as fields of its internal
// version of an object, and adds when it writes a version without these fields.
// It makes Tables and metadata from the internal version, without the annotations.
var derivedAnnotations = map[string][]string{
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

// metadataJSON returns an object's metadata in the form of the API server's own
// types; custom resources store it in another.
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

// metadata decodes an object's metadata as Tables and PartialObjectMetadata show
// it. It returns ErrForm for an unknown field.
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

// hidden returns the object's annotations that metadata leaves out.
func (e *Encoder) hidden(o *scan.Object) (names []string) {
	for _, name := range derivedAnnotations[e.Resource.GroupResource()] {
		if strings.Contains(o.Annotations(), name) {
			names = append(names, name)
		}
	}
	return names
}
