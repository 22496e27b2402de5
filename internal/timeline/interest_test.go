// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

func TestSeen(t *testing.T) {
	red := Interest{Match: func(o *scan.Object) bool { return o.Labels.Get("color") == "red" }}
	colored := func(rv uint64, color string) *scan.Object {
		return labelled("d/a", "u", rv, `{"color":"`+color+`"}`, "")
	}
	r5, b5, r9, b9 := colored(5, "red"), colored(5, "blue"), colored(9, "red"), colored(9, "blue")
	for _, test := range []struct {
		e    *Event
		want string
	}{
		{&Event{Type: kube.Added, RV: 9, Object: r9}, "ADDED " + r9.JSON},
		{&Event{Type: kube.Added, RV: 9, Object: b9}, ""},
		{&Event{Type: kube.Modified, RV: 9, Object: r9, Prev: r5}, "MODIFIED " + r9.JSON},
		{&Event{Type: kube.Modified, RV: 9, Object: r9, Prev: b5}, "ADDED " + r9.JSON},
		{&Event{Type: kube.Modified, RV: 9, Object: b9, Prev: r5}, "DELETED " + r9.JSON},
		{&Event{Type: kube.Modified, RV: 9, Object: b9, Prev: b5}, ""},
		{&Event{Type: kube.Deleted, RV: 9, Object: r9, Prev: r5}, "DELETED " + r9.JSON},
		{&Event{Type: kube.Deleted, RV: 9, Object: b9, Prev: b5}, ""},
	} {
		got := ""
		if typ, object, ok := red.Seen(test.e); ok {
			got = string(typ) + " " + object.JSON
		}
		if got != test.want {
			t.Errorf("%s of %s: %s", test.e.Type, test.e.Object.JSON, got)
		}
	}
}
