// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestBrowserLines takes lines as the script prints them.
func TestBrowserLines(t *testing.T) {
	object := func(name string, rv int) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"n","uid":"u","resourceVersion":"%d"},"data":{"a":"<"}}`, name, rv)
	}
	one := func(typ, name string, rv int) string {
		return fmt.Sprintf(`{"type":%q,"object":%s}`, typ, object(name, rv))
	}
	phase := func(name string) string { return fmt.Sprintf(`{"type":"state","phase":%q}`, name) }
	f := &followed{client: &client{texts: &texts{all: map[string]string{}}}}
	b := &browser{follows: map[string]*followed{"v1/x": f}}
	for _, text := range []string{
		phase("connecting"), `{"type":"error","message":"fetch failed"}`, phase("syncing"), one("ADDED", "b", 3), one("ADDED", "a", 2),
		`{"type":"sync","resourceVersion":"4","objects":[` + object("b", 3) + `,` + object("a", 2) + `]}`,
		phase("live"), one("MODIFIED", "b", 5), `{"type":"error","message":"not a watch event: X"}`, one("DELETED", "a", 6),
		`{"type":"error","code":429}`, phase("stale"), phase("syncing"), one("DELETED", "b", 5),
		`{"type":"sync","resourceVersion":"9","objects":[]}`, `{"type":"error","code":403,"refused":{"code":403,"began":"2026-01-31T15:04:05.678Z"}}`, one("ADDED", "c", 10),
		`{"type":"error","code":404,"refused":{"code":403,"began":"2026-01-31T15:04:05.678Z"}}`,
	} {
		if err := b.take([]byte(`{"resource":"v1/x",` + text[1:])); err != nil {
			t.Fatal(err)
		}
	}
	c := b.clients()[0]
	var got []string
	for _, x := range c.exchanges {
		got = append(got, fmt.Sprintln(x.Verb, x.Start, x.Code, x.RV, x.Items, x.Events, x.Error))
	}
	want := []string{
		"list0 0 200 4 [ADDED n/a at 2 ADDED n/b at 3] [] 0",
		"watch 4 200 0 [] [MODIFIED n/b at 5 MALFORMED  at 5 DELETED n/a at 6] 410",
		"list0 0 200 9 [] [] 0",
		"watch 9 200 0 [] [ADDED n/c at 10] 0",
		"list0 0 403 0 [] [] 0",
		"list0 0 404 0 [] [] 0",
	}
	if got, want := strings.Join(got, ""), strings.Join(want, "\n")+"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	late := c.exchanges[len(c.exchanges)-2:]
	if began := late[0].Began.UTC().Format(time.RFC3339Nano); began != "2026-01-31T15:04:05.678Z" || time.Since(late[1].Began) > time.Hour {
		t.Errorf("the refused requests began at %s and %v", began, late[1].Began)
	}
	if rv, synced := c.place(); rv != 10 || !synced {
		t.Errorf("it is at %d, %v", rv, synced)
	}
	if text := c.exchanges[0].Items[0].Text; text != strings.Replace(object("a", 2), "<", `\u003c`, 1) {
		t.Errorf("it has %s", text)
	}
}
