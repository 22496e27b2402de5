// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/json"
	"fmt"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// pod returns a Pod; labels are pairs.
func pod(namespace, name string, rv uint64, labels ...string) *scan.Object {
	m := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		m[labels[i]] = labels[i+1]
	}
	l, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	o, err := scan.ParseObject(fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"resourceVersion":"%d","labels":%s},"spec":{"containers":null},"status":{"phase":"Running"}}`, name, namespace, rv, l))
	if err != nil {
		panic(err)
	}
	return o
}
