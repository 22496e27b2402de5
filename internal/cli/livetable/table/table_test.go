// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/table"
)

var start = time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)

func after(d time.Duration) time.Time { return start.Add(d) }

func columns(names ...string) (all []table.Column) {
	for _, n := range names {
		all = append(all, table.Column{Name: n, IsName: n == "NAME"})
	}
	return all
}

// data has the key's name as its first cell.
func data(key string, cells ...string) table.Data {
	d := table.Data{Key: kube.Key(key), UID: "u", Cells: []table.Cell{{Text: kube.Key(key).Name()}}}
	for _, c := range cells {
		d.Cells = append(d.Cells, table.Cell{Text: c})
	}
	return d
}

// pods has three Pods.
func pods() *table.Table {
	t := &table.Table{}
	t.Replace(columns("NAME", "STATUS"), []table.Data{data("ns/b", "Running"), data("ns/a", "Pending"), data("ns-1/c", "Running")}, start)
	return t
}

// show is the rows in order: ns/a=Pending, with - for deleted, + for new and * for changed.
func show(t *table.Table) (all []string) {
	for _, r := range t.Rows() {
		s := string(r.Key)
		for i, c := range r.Cells[1:] {
			s += "=" + c.Text
			if !r.Changed(i + 1).IsZero() {
				s += "*"
			}
		}
		if !r.Added.IsZero() {
			s += "+"
		}
		if !r.Deleted.IsZero() {
			s += "-"
		}
		all = append(all, s)
	}
	return all
}

func expect(t *testing.T, of *table.Table, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, show(of)); d != "" {
		t.Errorf("rows: -want +got\n%s", d)
	}
}

func TestOrderOfList(t *testing.T) {
	expect(t, pods(), "ns-1/c=Running", "ns/a=Pending", "ns/b=Running")
}

func TestChanges(t *testing.T) {
	p := pods()
	p.Put(data("ns/a", "Running"), after(time.Second))
	p.Put(data("ns/b", "Running"), after(time.Second))
	p.Put(data("ns/aa", "Pending"), after(2*time.Second))
	p.Delete("ns-1/c", after(3*time.Second))
	p.Delete("ns/unknown", after(3*time.Second))
	expect(t, p, "ns-1/c=Running-", "ns/a=Running*", "ns/aa=Pending+", "ns/b=Running")
	if p.Len() != 3 {
		t.Errorf("%d objects", p.Len())
	}
	if r, at := p.LastChange(); r.Key != "ns-1/c" || at != after(3*time.Second) {
		t.Errorf("last change: %s at %v", r.Key, at)
	}
	if p.Expire(after(4 * time.Second)) {
		t.Error("the deleted row is gone too early")
	}
	if !p.Expire(after(3*time.Second+table.Ghost)) || p.Expire(after(time.Hour)) {
		t.Error("the deleted row is not removed once")
	}
	expect(t, p, "ns/a=Running*", "ns/aa=Pending+", "ns/b=Running")
	p.Settle(after(5 * time.Second))
	expect(t, p, "ns/a=Running", "ns/aa=Pending", "ns/b=Running")
}

func TestRecreated(t *testing.T) {
	p := pods()
	p.Put(data("ns/a", "Failed"), start)
	p.Delete("ns/a", after(time.Second))
	p.Put(data("ns/a", "Pending"), after(2*time.Second))
	expect(t, p, "ns-1/c=Running", "ns/a=Pending+", "ns/b=Running")
	p.Expire(after(10 * time.Second))
	expect(t, p, "ns-1/c=Running", "ns/a=Pending+", "ns/b=Running")
	d := data("ns/b", "Running")
	d.UID = "v" // the deletion was merged
	p.Put(d, after(3*time.Second))
	expect(t, p, "ns-1/c=Running", "ns/a=Pending+", "ns/b=Running+")
	if p.Len() != 3 {
		t.Errorf("%d objects", p.Len())
	}
}

func TestRelist(t *testing.T) {
	p := pods()
	p.Replace(columns("NAME", "STATUS"), []table.Data{data("ns/b", "Failed"), data("ns/a", "Pending"), data("ns/d", "New")}, after(time.Minute))
	expect(t, p, "ns-1/c=Running-", "ns/a=Pending", "ns/b=Failed*", "ns/d=New+")
	p.Replace(columns("NAME", "READY"), []table.Data{data("ns/b", "0/1")}, after(2*time.Minute))
	expect(t, p, "ns/b=0/1") // other columns: another table
}

func TestFilter(t *testing.T) {
	p := pods()
	p.Filter("RUN")
	expect(t, p, "ns-1/c=Running", "ns/b=Running")
	p.Put(data("ns/a", "Running"), start)
	p.Put(data("ns/b", "Failed"), start)
	p.Put(data("ns/e", "Failed"), start)
	expect(t, p, "ns-1/c=Running", "ns/a=Running*")
	if p.Index("ns/a") != 1 || p.Index("ns/b") != -1 || p.Index("none") != -1 {
		t.Error("index")
	}
	p.Filter("")
	expect(t, p, "ns-1/c=Running", "ns/a=Running*", "ns/b=Failed*", "ns/e=Failed+")
}

func TestSort(t *testing.T) {
	p := &table.Table{}
	p.Replace(columns("NAME", "RESTARTS"), []table.Data{data("a", "9"), data("b", "10"), data("c", "2 (5m ago)")}, start)
	p.SortBy(1, false)
	expect(t, p, "c=2 (5m ago)", "a=9", "b=10")
	p.Put(data("c", "11"), start)
	expect(t, p, "a=9", "b=10", "c=11*")
	p.SortBy(1, true)
	expect(t, p, "c=11*", "b=10", "a=9")
	p.SortBy(-1, false)
	expect(t, p, "a=9", "b=10", "c=11*")
	if column, _ := p.Sorted(); column != -1 {
		t.Error("sorted")
	}
}

func TestSortByAge(t *testing.T) {
	p := &table.Table{}
	age := func(key string, d time.Duration) table.Data {
		return table.Data{Key: kube.Key(key), Cells: []table.Cell{{Text: key}, {Since: after(-d).Unix()}}}
	}
	p.Replace(columns("NAME", "AGE"), []table.Data{age("a", time.Hour), age("b", time.Minute), age("c", 48*time.Hour)}, start)
	p.SortBy(1, false)
	expect(t, p, "b=", "a=", "c=")
	if got := p.Rows()[1].Cells[1].At(start); got != "60m" {
		t.Errorf("age %s", got)
	}
}

func TestLess(t *testing.T) {
	p := &table.Table{Less: func(a, b any) bool { return a.(int) < b.(int) }}
	with := func(key string, n int) table.Data {
		d := data(key, "x")
		d.Sort = n
		return d
	}
	p.Replace(columns("NAME", "STATUS"), []table.Data{with("a", 3), with("b", 1), with("c", 1)}, start)
	expect(t, p, "b=x", "c=x", "a=x")
	p.Put(with("b", 5), start) // no cell changes
	expect(t, p, "c=x", "a=x", "b=x")
}

func TestWidths(t *testing.T) {
	p := pods()
	widths := func(want ...int) {
		t.Helper()
		if d := cmp.Diff(want, p.Widths(start)); d != "" {
			t.Errorf("widths: -want +got\n%s", d)
		}
	}
	widths(4, 7)
	p.Put(data("ns/a", "CrashLoopBackOff"), start)
	widths(4, 16)
	p.Put(data("ns/a", "Running"), start)
	widths(4, 16) // not yet
	if d := cmp.Diff([]int{4, 7}, p.Widths(after(time.Minute))); d != "" {
		t.Errorf("later: -want +got\n%s", d)
	}
	p.Grow(1, 12)
	widths(4, 12)
}

func TestRate(t *testing.T) {
	p := pods()
	if p.Rate(start) != 0 {
		t.Error("a list is not a change")
	}
	for i := range 40 {
		now := after(time.Duration(i) * 100 * time.Millisecond)
		p.Put(data("ns/a", fmt.Sprint(i)), now)
		p.Count(1, now)
	}
	if got := p.Rate(after(4 * time.Second)); got != 20 {
		t.Errorf("%v changes per second", got)
	}
	if got := p.Rate(after(time.Minute)); got != 0 {
		t.Errorf("%v changes per second, later", got)
	}
}

// TestRandom compares a table with a map after random events, filters and orders.
func TestRandom(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		of, model := &table.Table{}, map[string]table.Data{}
		cols := columns("NAME", "STATUS", "N")
		of.Replace(cols, nil, start)
		now, filter := start, ""
		for range 400 {
			now = now.Add(time.Duration(random.IntN(900)) * time.Millisecond)
			key := fmt.Sprintf("ns%d/p%d", random.IntN(3), random.IntN(15))
			d := data(key, []string{"Running", "Pending", "Error"}[random.IntN(3)], fmt.Sprint(random.IntN(30)))
			d.UID = fmt.Sprint(random.IntN(2))
			switch random.IntN(12) {
			case 0, 1, 2:
				of.Delete(kube.Key(key), now)
				delete(model, key)
			case 3:
				filter = []string{"", "run", "p1", "Error"}[random.IntN(4)]
				of.Filter(filter)
			case 4:
				of.SortBy(random.IntN(4)-1, random.IntN(2) == 0)
			case 5:
				for key := range maps.Keys(model) {
					if random.IntN(3) == 0 {
						delete(model, key)
					}
				}
				model[key] = d
				of.Replace(cols, copies(model), now)
			default:
				of.Put(copyOf(d), now)
				model[key] = d
			}
			if random.IntN(3) == 0 {
				of.Expire(now)
			}
			check(t, seed, of, model, filter)
		}
		of.Settle(now)
		of.SortBy(-1, false)
		of.Filter("")
		keys := slices.Sorted(maps.Keys(model))
		for i, r := range of.Rows() {
			if string(r.Key) != keys[i] {
				t.Fatalf("seed %d: row %d is %s, not %s", seed, i, r.Key, keys[i])
			}
		}
	}
}

func copyOf(d table.Data) table.Data {
	d.Cells = slices.Clone(d.Cells)
	return d
}

func copies(model map[string]table.Data) (all []table.Data) {
	for _, d := range model {
		all = append(all, copyOf(d))
	}
	return all
}

func check(t *testing.T, seed uint64, of *table.Table, model map[string]table.Data, filter string) {
	t.Helper()
	if of.Len() != len(model) {
		t.Fatalf("seed %d: %d objects, not %d", seed, of.Len(), len(model))
	}
	got := map[string][]table.Cell{}
	for i, r := range of.Rows() {
		if of.Index(r.Key) != i {
			t.Fatalf("seed %d: %s is at %d, and Index says %d", seed, r.Key, i, of.Index(r.Key))
		}
		if r.Deleted.IsZero() {
			got[string(r.Key)] = r.Cells
		}
	}
	want := map[string][]table.Cell{}
	for key, d := range model {
		if slices.ContainsFunc(d.Cells, func(c table.Cell) bool {
			return strings.Contains(strings.ToLower(c.Text), strings.ToLower(filter))
		}) {
			want[key] = d.Cells
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("seed %d: -want +got\n%s", seed, d)
	}
}
