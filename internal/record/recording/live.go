// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"unsafe"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// live are objects that exist, not necessarily all of them.
type live struct {
	objects map[kube.Key]*scan.Object
	bytes   int // of memory
	max     int
}

// set adds an object. Beyond the limit it drops the others.
func (v *live) set(o *scan.Object) {
	v.remove(o.Key)
	if v.bytes += sizeOf(o); v.bytes > v.max {
		v.objects, v.bytes = map[kube.Key]*scan.Object{}, sizeOf(o)
	}
	v.objects[o.Key] = o
}

func (v *live) remove(key kube.Key) {
	if o := v.objects[key]; o != nil {
		v.bytes -= sizeOf(o)
		delete(v.objects, key)
	}
}

// mapEntry estimates the memory of a map's entry without key and value.
const mapEntry = 64

// sizeOf estimates the memory of an object. A label in JSON can be smaller than a
// scan.Label.
func sizeOf(o *scan.Object) int {
	return len(o.JSON) + len(o.Row) + len(o.Key) + cap(o.Labels)*int(unsafe.Sizeof(scan.Label{})) + int(unsafe.Sizeof(*o)) + mapEntry
}
