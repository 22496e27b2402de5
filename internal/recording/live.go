// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// live are the objects that exist. Beyond the limit their values are nil.
type live struct {
	objects map[kube.Key]*scan.Object
	bytes   int // of those held
	max     int // limit of bytes
}

func (v *live) set(o *scan.Object) {
	v.bytes += sizeOf(o) - sizeOf(v.objects[o.Key])
	if v.objects[o.Key] = o; v.bytes <= v.max {
		return
	}
	all := make(map[kube.Key]*scan.Object, len(v.objects))
	for key := range v.objects {
		all[kube.Key(strings.Clone(string(key)))] = nil // the key shares memory with the object's JSON
	}
	v.objects, v.bytes = all, 0
}

func (v *live) remove(key kube.Key) {
	v.bytes -= sizeOf(v.objects[key])
	delete(v.objects, key)
}

func sizeOf(o *scan.Object) int {
	if o == nil {
		return 0
	}
	return len(o.JSON) + len(o.Row)
}
