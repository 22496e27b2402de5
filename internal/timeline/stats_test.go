// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// TestSizes: the sizes return to zero when all objects are deleted.
func TestSizes(t *testing.T) {
	tl := New(Options{})
	tl.Replace(podList(100))
	rv := uint64(100)
	apply := func(f scan.Frame) {
		t.Helper()
		if err := tl.Apply(f); err != nil {
			t.Fatal(err)
		}
	}
	version := func(i int) *scan.Object {
		rv++
		return object(kube.MakeKey("a", fmt.Sprint("p", i)), "u", rv)
	}
	for i := range 100 {
		apply(scan.Frame{Type: kube.Added, Object: version(i)})
		apply(modified(version(i)))
	}
	tl.Flush()
	full := tl.Stats()
	if full.Objects != 100 || full.Overhead < 100*100 || full.Overhead > 100*500 {
		t.Errorf("%+v", full)
	}
	for i := range 100 {
		apply(deleted(version(i)))
	}
	tl.Flush()
	if s := tl.Stats(); s.Objects != 0 || s.Bytes != 0 || s.Overhead != 0 {
		t.Errorf("without objects: %+v", s)
	}
}
