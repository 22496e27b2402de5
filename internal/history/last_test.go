// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLast compares the last events with the end of all of them.
func TestLast(t *testing.T) {
	c := newCluster(3)
	s, st := open(t, t.TempDir())
	defer s.Close()
	var all []Event
	for range 200 {
		all = append(all, c.step())
	}
	if err := st.Append(all, c.rv, ms(c.rv*1000)); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		from := 100 + c.rnd.Uint64N(c.rv-99)
		to := from + c.rnd.Uint64N(c.rv-from+1)
		n := c.rnd.IntN(20)
		key := all[c.rnd.IntN(len(all))].Object.Key
		var events, versions []string
		for _, e := range all {
			if from < e.Object.RV && e.Object.RV <= to {
				events = append(events, brief(e))
				if e.Object.Key == key {
					versions = append(versions, brief(e))
				}
			}
		}
		got, err := st.LastEvents(from, to, n)
		if diff := cmp.Diff(events[max(0, len(events)-n):], briefs(got)); err != nil || len(got) > 0 && diff != "" || len(got) != min(n, len(events)) {
			t.Errorf("the last %d events of (%d, %d]: %v %s", n, from, to, err, diff)
		}
		got, err = st.LastVersions(key, from, to, n)
		if diff := cmp.Diff(versions[max(0, len(versions)-n):], briefs(got)); err != nil || len(got) > 0 && diff != "" || len(got) != min(n, len(versions)) {
			t.Errorf("the last %d versions of %s in (%d, %d]: %v %s", n, key, from, to, err, diff)
		}
	}
}

func briefs(events []Event) (out []string) {
	for _, e := range events {
		out = append(out, brief(e))
	}
	return out
}
