// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapping finds a resource by any of kubectl's names for it, such as deploy, deployments,
// deployments.apps or Deployment.
func Mapping(mapper meta.RESTMapper, text string) (*meta.RESTMapping, error) {
	full, partial := schema.ParseResourceArg(strings.ToLower(text))
	var gvk schema.GroupVersionKind
	err := error(&meta.NoResourceMatchError{})
	if full != nil {
		gvk, err = mapper.KindFor(*full)
	}
	if err != nil {
		gvk, err = mapper.KindFor(partial.WithVersion(""))
	}
	if err == nil {
		return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	kind, group := schema.ParseKindArg(text)
	if kind != nil {
		if m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			return m, nil
		}
	}
	m, err := mapper.RESTMapping(group)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the server doesn't have a resource type %q", text) // as kubectl says it
	}
	return m, err
}
