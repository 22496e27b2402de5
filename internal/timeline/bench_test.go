// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// BenchmarkInterest measures the cost of an event that concerns one of many
// watchers. It must not depend on their number.
func BenchmarkInterest(b *testing.B) {
	for _, kind := range []struct {
		name string
		of   func(i int) Interest
	}{
		{"label", func(i int) Interest {
			return Interest{Attribute: &Attribute{Label: "app", Values: []string{fmt.Sprint(i)}}, Match: app(fmt.Sprint(i))}
		}},
		{"field", func(i int) Interest {
			name := fmt.Sprint("n", i)
			return Interest{
				Attribute: &Attribute{Field: "spec.nodeName", FieldValue: node, Values: []string{name}},
				Match:     func(o *scan.Object) bool { return node(o) == name },
			}
		}},
		{"namespace", func(i int) Interest {
			namespace := fmt.Sprint("d", i)
			return Interest{Namespace: namespace, Match: in(namespace)}
		}},
	} {
		for _, n := range []int{100, 1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("by=%s/watchers=%d", kind.name, n), func(b *testing.B) { fanOut(b, n, kind.of) })
		}
	}
}

func fanOut(b *testing.B, n int, of func(i int) Interest) {
	tl := New(Options{})
	tl.Reset(&scan.List{Kind: "PodList", APIVersion: "v1", Typed: true, RV: 1})
	cursors := make([]*Cursor, n)
	for i := range cursors {
		c, err := tl.Watch(1, of(i))
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		cursors[i] = c
	}
	const objects = 64 // the events concern the first 64 watchers in turn
	at := func(i int, rv uint64) *scan.Object {
		i %= objects
		return labelled(kube.MakeKey(fmt.Sprint("d", i), "p"), "u", rv, fmt.Sprintf(`{"app":"%d","a":"b","c":"d"}`, i), fmt.Sprint("n", i))
	}
	frames := make([]scan.Frame, 0, 4096)
	rv := uint64(1)
	got := 0
	for i := 0; b.Loop(); i++ {
		if i%cap(frames) == 0 {
			b.StopTimer()
			frames = frames[:0]
			for k := range cap(frames) {
				rv++
				frames = append(frames, scan.Frame{Type: kube.Modified, Object: at(k, rv)})
			}
			b.StartTimer()
		}
		if err := tl.Apply(frames[i%cap(frames)]); err != nil {
			b.Fatal(err)
		}
		tl.Flush()
		batch, err := cursors[i%cap(frames)%objects].Next()
		if err != nil {
			b.Fatal(err)
		}
		got += len(batch.Events)
	}
	if got != b.N {
		b.Fatalf("%d of %d events were delivered", got, b.N)
	}
}
