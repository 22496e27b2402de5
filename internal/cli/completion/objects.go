// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchkeeper/watchkeeper/internal/cli/connect"
)

// maxObjects is how many objects of a resource are read for their fields and labels.
const maxObjects = 50

// named returns the first resource that the arguments name, nil if there is none, and the name
// of an object, "" for none.
func (c *completer) named(args []string) (mapping *meta.RESTMapping, name string) {
	if len(args) == 0 {
		return nil, ""
	}
	types, name, _ := strings.Cut(args[0], "/")
	if len(args) > 1 {
		name = args[1]
	}
	first, _, _ := strings.Cut(types, ",")
	mapper, err := c.factory.ToRESTMapper()
	if err != nil {
		return nil, name
	}
	if mapping, err = connect.Mapping(mapper, first); err != nil {
		return nil, name
	}
	return mapping, name
}

// some returns a few of the objects that the arguments name, of their first resource.
func (c *completer) some(ctx context.Context, cmd *cobra.Command, args []string) []unstructured.Unstructured {
	mapping, _ := c.named(args)
	if mapping == nil {
		return nil
	}
	client, err := c.factory.DynamicClient()
	if err != nil {
		return nil
	}
	list := client.Resource(mapping.Resource).List
	if all, _ := cmd.Flags().GetBool("all-namespaces"); mapping.Scope.Name() == meta.RESTScopeNameNamespace && !all {
		namespace, _, err := c.factory.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return nil
		}
		list = client.Resource(mapping.Resource).Namespace(namespace).List
	}
	objects, err := list(ctx, metav1.ListOptions{Limit: maxObjects})
	if err != nil {
		return nil
	}
	return objects.Items
}

// sortKeys completes the path of a field.
func (c *completer) sortKeys(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	paths := map[string]bool{}
	for _, o := range c.some(cmd.Context(), cmd, args) {
		unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
		addPaths(paths, "", o.Object)
	}
	return starting(slices.Sorted(maps.Keys(paths)), word), cobra.ShellCompDirectiveNoFileComp
}

// addPaths adds the JSONPaths of the strings and numbers in a value.
func addPaths(paths map[string]bool, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			addPaths(paths, path+"."+strings.ReplaceAll(name, ".", `\.`), member)
		}
	case []any:
		if len(value) > 0 {
			addPaths(paths, path+"[0]", value[0])
		}
	case string, int64, float64:
		paths[path] = true
	}
}

// labels returns the labels of objects, with their values in order.
func (c *completer) labels(cmd *cobra.Command, args []string) map[string][]string {
	all := map[string][]string{}
	for _, o := range c.some(cmd.Context(), cmd, args) {
		for key, value := range o.GetLabels() {
			if i, known := slices.BinarySearch(all[key], value); !known {
				all[key] = slices.Insert(all[key], i, value)
			}
		}
	}
	return all
}

// labelKeys completes the last of several keys of labels.
func (c *completer) labelKeys(cmd *cobra.Command, args []string, word string) (words []string, _ cobra.ShellCompDirective) {
	head, _ := cutLast(word)
	for _, key := range slices.Sorted(maps.Keys(c.labels(cmd, args))) {
		words = append(words, head+key)
	}
	return starting(words, word), cobra.ShellCompDirectiveNoFileComp
}

// selectors completes the last requirement of a label selector: a key, and then its value.
func (c *completer) selectors(cmd *cobra.Command, args []string, word string) (words []string, _ cobra.ShellCompDirective) {
	head, last := cutLast(word)
	all := c.labels(cmd, args)
	key, _, hasValue := strings.Cut(last, "=")
	if hasValue {
		for _, value := range all[key] {
			words = append(words, head+key+"="+value)
		}
		return starting(words, word), cobra.ShellCompDirectiveNoFileComp
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		words = append(words, head+key+"=")
	}
	return starting(words, word), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
