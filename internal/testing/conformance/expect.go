// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// expectations are the words of a rule file that say how a request is sent,
// which parts of the answers may differ, and what the API server must answer.
var expectations = map[string]func(text string) (option, error){
	"as": func(text string) (option, error) {
		if text != "nobody" {
			return nil, errors.New("only nobody is known")
		}
		return as(compare.AsNobody), nil
	},
	"over": func(text string) (option, error) {
		if text != "HTTP/2" {
			return nil, errors.New("only HTTP/2 is known")
		}
		return overHTTP2, nil
	},
	"body": func(text string) (option, error) { return body(text), nil },
	"tries": func(text string) (option, error) {
		n, err := strconv.Atoi(text)
		return func(a *asking) { a.tries = n }, err
	},
	"every-bookmark": func(string) (option, error) { return withBookmarks, nil },
	"mask": func(text string) (option, error) {
		m, ok := masks[text]
		if !ok {
			return nil, errors.New("no such mask")
		}
		return func(a *asking) { a.masks = append(a.masks, m) }, nil
	},
	"<":      expectHead,
	"status": expectStatus,
	"kind":   func(text string) (option, error) { return kind(text), nil },
	"items":  func(text string) (option, error) { return items(names(text)...), nil },
	"length": func(text string) (option, error) {
		n, err := strconv.Atoi(text)
		return length(n), err
	},
	"events": func(text string) (option, error) { return events(eventList(text)...), nil },
	"added":  func(text string) (option, error) { return events(added(names(text)...)...), nil },
	"has":    nonEmpty(has),
	"lacks":  nonEmpty(lacks),
	"starts": func(text string) (option, error) {
		pattern, err := regexp.Compile(`^(?:` + text + `)`)
		return matches(pattern), err
	},
	"indented":     func(string) (option, error) { return indented, nil },
	"compact":      func(string) (option, error) { return lacks("\n "), nil },
	"one-line":     func(string) (option, error) { return oneLine, nil },
	"envelope":     func(text string) (option, error) { return enveloped(text), nil },
	"columns-once": func(string) (option, error) { return columnsOnce, nil },
	"clean-end":    func(string) (option, error) { return check(func(a *compare.Answer) error { return a.End }), nil },
	"rv-from": func(text string) (option, error) {
		rv, err := strconv.ParseUint(text, 10, 64)
		return rvFrom(rv), err
	},
}

func nonEmpty(f func(string) option) func(string) (option, error) {
	return func(text string) (option, error) {
		if text == "" {
			return nil, errors.New("no text")
		}
		return f(text), nil
	}
}

// names splits a list of names; none is -.
func names(text string) []string {
	if text == "-" {
		return nil
	}
	return strings.Fields(text)
}

// eventList splits a list of events; none is -.
func eventList(text string) []string {
	if text == "-" {
		return nil
	}
	return strings.Split(text, ", ")
}

// added are the events of objects that exist already.
func added(names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "ADDED "+name)
	}
	return out
}

// expectHead reads what follows <: a header, which is not sent when it is
// empty, or statuses.
func expectHead(text string) (option, error) {
	if m := header.FindStringSubmatch(text); m != nil {
		if m[2] == "" {
			return sends(m[1]), nil
		}
		return sends(m[1], m[2]), nil
	}
	var codes []int
	for word := range strings.SplitSeq(text, " or ") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, errors.New("neither a header nor a status")
		}
		codes = append(codes, n)
	}
	return code(codes...), nil
}

// expectStatus reads a status, a reason and a message. No reason is -.
func expectStatus(text string) (option, error) {
	words := append(strings.SplitN(text, " ", 3), "", "")
	n, err := strconv.Atoi(words[0])
	if words[1] == "-" {
		words[1] = ""
	}
	return status(n, words[1], unquoted(words[2])), err
}

// check returns an option that checks the API server's answer, so that a rule does not
// hold vacuously.
func check(f func(*compare.Answer) error) option {
	return func(a *asking) { a.checks = append(a.checks, f) }
}

// code expects one of several statuses.
func code(want ...int) option {
	return check(func(a *compare.Answer) error {
		if !slices.Contains(want, a.Code) {
			return fmt.Errorf("status %d, not %v", a.Code, want)
		}
		return nil
	})
}

// status expects a Status in JSON. A message that ends in "…" is a prefix.
func status(want int, reason, message string) option {
	return check(func(a *compare.Answer) error {
		var s metav1.Status
		if err := json.Unmarshal(a.Body, &s); err != nil {
			return err
		}
		prefix, open := strings.CutSuffix(message, "…")
		switch {
		case a.Code != want || int(s.Code) != want || s.Status != metav1.StatusFailure || s.Kind != "Status" || s.APIVersion != "v1":
			return fmt.Errorf("no Status %d", want)
		case string(s.Reason) != reason:
			return fmt.Errorf("reason %q, not %q", s.Reason, reason)
		case !open && s.Message != message, open && !strings.HasPrefix(s.Message, prefix):
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

func lacks(text string) option {
	return check(func(a *compare.Answer) error {
		if bytes.Contains(a.Body, []byte(text)) {
			return fmt.Errorf("with %q", text)
		}
		return nil
	})
}

func matches(pattern *regexp.Regexp) option {
	return check(func(a *compare.Answer) error {
		if !pattern.Match(a.Body) {
			return fmt.Errorf("not like %s", pattern)
		}
		return nil
	})
}

// sends expects a header; no values mean that it is absent.
func sends(name string, values ...string) option {
	return check(func(a *compare.Answer) error {
		if !slices.Equal(a.Header[name], values) {
			return fmt.Errorf("%s is %q, not %q", name, a.Header[name], values)
		}
		return nil
	})
}

func contentType(value string) option { return sends("Content-Type", value) }

// kind expects the kind of an object or list in JSON.
func kind(want string) option {
	return check(func(a *compare.Answer) error {
		var o metav1.TypeMeta
		if err := json.Unmarshal(a.Body, &o); err != nil {
			return err
		}
		if a.Code != 200 || o.Kind != want {
			return fmt.Errorf("kind %q, not %q", o.Kind, want)
		}
		return nil
	})
}

// rvFrom expects an object or a list at an RV or later.
func rvFrom(least uint64) option {
	return check(func(a *compare.Answer) error {
		rv, err := rvOf(a.Body)
		if err != nil || rv < least {
			return fmt.Errorf("resourceVersion %d, not %d or later: %w", rv, least, err)
		}
		return nil
	})
}

// readList reads a list in JSON.
func readList(a *compare.Answer) (metav1.PartialObjectMetadataList, error) {
	var l metav1.PartialObjectMetadataList
	if err := json.Unmarshal(a.Body, &l); err != nil {
		return l, err
	}
	if a.Code != 200 || !strings.HasSuffix(l.Kind, "List") {
		return l, errors.New("no list")
	}
	return l, nil
}

// listMeta reads the metadata of a list or a Table in JSON.
func listMeta(a *compare.Answer) (metav1.ListMeta, error) {
	var l struct{ Metadata metav1.ListMeta }
	err := json.Unmarshal(a.Body, &l)
	return l.Metadata, err
}

// items expects exactly the items of a list in JSON, in order: names, or namespace/name
// in a list of several namespaces.
func items(want ...string) option {
	return check(func(a *compare.Answer) error {
		l, err := readList(a)
		if err != nil {
			return err
		}
		var names, keys []string
		for _, i := range l.Items {
			names = append(names, i.Name)
			keys = append(keys, i.Namespace+"/"+i.Name)
		}
		if !slices.Equal(names, want) && !slices.Equal(keys, want) {
			return fmt.Errorf("items %v, not %v", keys, want)
		}
		return nil
	})
}

// length expects a list in JSON with a number of items.
func length(want int) option {
	return check(func(a *compare.Answer) error {
		l, err := readList(a)
		if err != nil || len(l.Items) != want {
			return fmt.Errorf("%d items, not %d: %w", len(l.Items), want, err)
		}
		return nil
	})
}

// events expects exactly the events of a complete watch, with bookmarks: "ADDED name",
// and "BOOKMARK end" for the end bookmark.
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

// brief describes frames as events does.
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

// sequence checks the events of frames that were read one by one.
func sequence(frames []compare.Frame, want ...string) error {
	if got := brief(frames); !slices.Equal(got, want) {
		return fmt.Errorf("the API server's events are %q, not %q: %v", got, want, compare.Strings(frames))
	}
	return nil
}

// count reports whether a number of frames has arrived.
func count(n int) func([]compare.Frame) bool {
	return func(all []compare.Frame) bool { return len(all) == n }
}

var indented = check(func(a *compare.Answer) error {
	if !strings.HasPrefix(a.Text(), "{\n  \"") || !strings.HasSuffix(a.Text(), "\n}") {
		return errors.New("not indented, or with a newline at the end")
	}
	return nil
})

var oneLine = check(func(a *compare.Answer) error {
	if !strings.HasSuffix(a.Text(), "}\n") || bytes.Count(a.Body, []byte("\n")) != 1 {
		return errors.New("not one newline, at the end")
	}
	return nil
})

// columnsOnce expects a watch of Tables of which only the first has columns.
var columnsOnce = check(func(a *compare.Answer) error {
	for i, line := range strings.Split(strings.TrimSpace(a.Text()), "\n") {
		if columns := !strings.Contains(line, `"columnDefinitions":null`); columns != (i == 0) {
			return fmt.Errorf("columns in event %d: %v", i, columns)
		}
	}
	return nil
})

// enveloped expects protobuf of a kind.
func enveloped(kind string) option {
	return check(func(a *compare.Answer) error {
		u, err := watchread.Envelope(a.Body)
		if err != nil {
			return err
		}
		if u.Kind != kind || len(u.Raw) == 0 {
			return fmt.Errorf("an envelope of %q, not %q", u.Kind, kind)
		}
		return nil
	})
}
