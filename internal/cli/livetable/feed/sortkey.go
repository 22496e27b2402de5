// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// A sortValue is what an object is sorted by: values of one kind by value, kinds in this order.
type sortValue struct {
	kind   int     // 0 if the object has no such field
	number float64 // of numbers and quantities
	text   string
}

// relaxed is what kubectl takes for a JSONPath: x, .x, {x} and {.x}.
var relaxed = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// SortBy returns the key of an object, and the order of keys, for kubectl's --sort-by:
// objects without the field come first, and texts that are quantities are compared by value.
func SortBy(expression string) (key func(*scan.Object) any, less func(a, b any) bool, err error) {
	m := relaxed.FindStringSubmatch(expression)
	if m == nil {
		return nil, nil, fmt.Errorf("sort-by: %q is not a path such as .metadata.name", expression)
	}
	path := jsonpath.New("sorting").AllowMissingKeys(true)
	if err := path.Parse("{." + m[1] + m[2] + "}"); err != nil {
		return nil, nil, fmt.Errorf("sort-by: %w", err)
	}
	key = func(o *scan.Object) any {
		var content map[string]any
		if utiljson.Unmarshal([]byte(o.JSON), &content) != nil {
			return sortValue{}
		}
		found, err := path.FindResults(content)
		if err != nil || len(found) == 0 || len(found[0]) == 0 || !found[0][0].IsValid() {
			return sortValue{}
		}
		return valueOf(found[0][0].Interface())
	}
	less = func(a, b any) bool {
		x, _ := a.(sortValue)
		y, _ := b.(sortValue)
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.number, y.number), strings.Compare(x.text, y.text)) < 0
	}
	return key, less, nil
}

func valueOf(v any) sortValue {
	switch v := v.(type) {
	case nil:
		return sortValue{}
	case int64:
		return sortValue{kind: 1, number: float64(v)}
	case float64:
		return sortValue{kind: 1, number: v}
	case string:
		if q, err := resource.ParseQuantity(v); err == nil {
			return sortValue{kind: 1, number: q.AsApproximateFloat64()}
		}
		return sortValue{kind: 2, text: strings.Clone(v)}
	}
	return sortValue{kind: 3, text: fmt.Sprint(v)}
}
