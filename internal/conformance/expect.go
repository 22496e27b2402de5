// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

// These are the options of Env.same: first how to ask.

func accept(value string) option { return func(a *asking) { a.Accept = value } }

func method(value string) option { return func(a *asking) { a.Method = value } }

func as(who compare.As) option { return func(a *asking) { a.As = who } }

func header(name string, values ...string) option {
	return func(a *asking) { a.Header[name] = values }
}

func body(text string) option { return func(a *asking) { a.Body = text } }

// mask blanks what may differ.
func mask(m compare.Mask) option { return func(a *asking) { a.masks = append(a.masks, m) } }

// ageing has a few more tries: an age may go by a second between the answers.
func ageing(a *asking) { a.tries = 5 }

// withBookmarks keeps all bookmarks of a watch.
func withBookmarks(a *asking) { a.bookmarks = true }

// Then what the API server must answer.

func check(f func(*compare.Answer) error) option {
	return func(a *asking) { a.checks = append(a.checks, f) }
}

func code(want int) option {
	return check(func(a *compare.Answer) error {
		if a.Code != want {
			return fmt.Errorf("status %d, not %d", a.Code, want)
		}
		return nil
	})
}

// status is a Status in JSON. A message that ends in "…" is how it begins.
func status(want int, reason, message string) option {
	return check(func(a *compare.Answer) error {
		var s struct {
			Kind, APIVersion, Status, Reason, Message string
			Code                                      int
		}
		if err := json.Unmarshal(a.Body, &s); err != nil {
			return err
		}
		beginning, open := strings.CutSuffix(message, "…")
		switch {
		case a.Code != want || s.Code != want || s.Status != "Failure" || s.Kind != "Status" || s.APIVersion != "v1":
			return fmt.Errorf("no Status %d", want)
		case s.Reason != reason:
			return fmt.Errorf("reason %q, not %q", s.Reason, reason)
		case !open && s.Message != message, open && !strings.HasPrefix(s.Message, beginning):
			return fmt.Errorf("message %q, not %q", s.Message, message)
		}
		return nil
	})
}

func has(text string) option {
	return check(func(a *compare.Answer) error {
		if !bytes.Contains(a.Body, []byte(text)) {
			return fmt.Errorf("without %q", text)
		}
		return nil
	})
}

func hasNot(text string) option {
	return check(func(a *compare.Answer) error {
		if bytes.Contains(a.Body, []byte(text)) {
			return fmt.Errorf("with %q", text)
		}
		return nil
	})
}

// sends is a header of the answer; no values mean that it is not there.
func sends(name string, values ...string) option {
	return check(func(a *compare.Answer) error {
		if !slices.Equal(a.Header[name], values) {
			return fmt.Errorf("%s is %q, not %q", name, a.Header[name], values)
		}
		return nil
	})
}

func contentType(value string) option { return sends("Content-Type", value) }

// kind is the kind of an object or list in JSON.
func kind(want string) option {
	return check(func(a *compare.Answer) error {
		var o struct{ Kind string }
		if err := json.Unmarshal(a.Body, &o); err != nil {
			return err
		}
		if a.Code != 200 || o.Kind != want {
			return fmt.Errorf("kind %q, not %q", o.Kind, want)
		}
		return nil
	})
}

// A list is what is read of one.
type list struct {
	Kind     string
	Metadata struct {
		ResourceVersion, Continue string
		RemainingItemCount        *int64
	}
	Items []struct {
		Metadata struct{ Namespace, Name, ResourceVersion string }
	}
}

func readList(a *compare.Answer) (list, error) {
	var l list
	if err := json.Unmarshal(a.Body, &l); err != nil {
		return l, err
	}
	if a.Code != 200 || !strings.HasSuffix(l.Kind, "List") {
		return l, fmt.Errorf("no list")
	}
	return l, nil
}

// items are exactly the items of a list in JSON, in their order: names, or
// namespace/name in a list of several namespaces.
func items(want ...string) option {
	return check(func(a *compare.Answer) error {
		l, err := readList(a)
		if err != nil {
			return err
		}
		var names, keys []string
		for _, i := range l.Items {
			names = append(names, i.Metadata.Name)
			keys = append(keys, i.Metadata.Namespace+"/"+i.Metadata.Name)
		}
		if !slices.Equal(names, want) && !slices.Equal(keys, want) {
			return fmt.Errorf("items %v, not %v", keys, want)
		}
		return nil
	})
}

// events are exactly the events of a whole watch, bookmarks included: "ADDED
// name", with "BOOKMARK end" for the one that ends the initial events.
func events(want ...string) option {
	return check(func(a *compare.Answer) error {
		frames, err := compare.Frames(a.Header.Get("Content-Type"), a.Body)
		if err != nil || a.Code != 200 || a.End != nil {
			return fmt.Errorf("no watch: %d, %w, ended by %v", a.Code, err, a.End)
		}
		if got := brief(frames); !slices.Equal(got, want) {
			return fmt.Errorf("events %q, not %q", got, want)
		}
		return nil
	})
}

// brief says what frames are, as events does.
func brief(frames []compare.Frame) []string {
	var out []string
	for _, f := range frames {
		s := f.Type
		switch {
		case f.EndsInitial():
			s += " end"
		case f.Type == "ERROR":
			s += fmt.Sprintf(" %d", f.Code)
		case f.Name != "":
			s += " " + f.Name
		}
		out = append(out, s)
	}
	return out
}

// sequence checks events of frames that were read one by one.
func sequence(frames []compare.Frame, want ...string) error {
	if got := brief(frames); !slices.Equal(got, want) {
		return fmt.Errorf("the API server's events are %q, not %q", got, want)
	}
	return nil
}

// bookmarks masks the RVs of bookmarks in a watch in JSON.
var bookmarks = mask(compare.Bookmarks(compare.JSON))

// count waits for a number of frames.
func count(n int) func([]compare.Frame) bool {
	return func(all []compare.Frame) bool { return len(all) == n }
}

// blank replaces what the patterns match by a dash.
func blank(body []byte, patterns ...string) []byte {
	for _, p := range patterns {
		body = regexp.MustCompile(p).ReplaceAll(body, []byte("-"))
	}
	return body
}
