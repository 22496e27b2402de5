// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
)

// A target is a resource of the command line, with the names of its objects; none for all.
type target struct {
	mapping *meta.RESTMapping
	names   []string
}

// check fails as kubectl get does if the arguments are wrong, or name an object that does not
// exist.
func (c *command) check(cmd *cobra.Command, namespace string, args []string) error {
	r := c.factory.NewBuilder().
		Unstructured().
		NamespaceParam(namespace).DefaultNamespace().AllNamespaces(cmdutil.GetFlagBool(cmd, "all-namespaces")).
		LabelSelectorParam(cmdutil.GetFlagString(cmd, "selector")).
		FieldSelectorParam(cmdutil.GetFlagString(cmd, "field-selector")).
		ResourceTypeOrNameArgs(true, args...).
		ContinueOnError().
		Latest().
		Do()
	if cmdutil.GetFlagBool(cmd, "ignore-not-found") {
		r.IgnoreErrors(apierrors.IsNotFound)
	}
	if err := r.Err(); err != nil {
		return err
	}
	named, err := resource.HasNames(args)
	if err != nil || !named {
		return err
	}
	_, err = r.Infos()
	return err
}

// targets returns the resources that arguments name, which [command.check] has found to be
// right: TYPE[,TYPE…] [NAME…], or TYPE/NAME….
func (c *command) targets(args []string) (all []target, err error) {
	mapper, err := c.factory.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	add := func(types string, names ...string) error {
		for _, text := range resource.SplitResourceArgument(c.factory.NewBuilder().ReplaceAliases(types)) {
			mapping, err := connect.Mapping(mapper, text)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(t target) bool { return t.mapping.Resource == mapping.Resource })
			if i < 0 {
				i, all = len(all), append(all, target{mapping: mapping})
			}
			all[i].names = append(all[i].names, names...)
		}
		return nil
	}
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		err := add(args[0], args[1:]...)
		return all, err
	}
	for _, arg := range args {
		types, name, _ := strings.Cut(arg, "/")
		if err := add(types, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}
