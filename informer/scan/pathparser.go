// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"strconv"
	"strings"
)

// The limits of one projection.
const (
	maxPathsLen  = 4 << 10 // bytes
	maxPaths     = 64
	maxPathDepth = 32
)

// A stepKind says what a step of a path selects.
type stepKind uint8

const (
	stepMember stepKind = iota // the member with a name
	stepEach                   // [*]: each element of an array
	stepIndex                  // [0]: the element with an index
	stepWhere                  // [?(@.type=="Ready")]: the first element whose member has a value
)

// A step is a part of a path.
type step struct {
	kind  stepKind
	name  string // of the member
	value string // of stepWhere
	index int
}

// A parsedPath is a path and its text.
type parsedPath struct {
	text  string
	steps []step
}

type pathParser struct{ rest, all string }

// parsePaths parses paths separated by commas.
func parsePaths(text string) (paths []parsedPath, err error) {
	if len(text) > maxPathsLen {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrPath, maxPathsLen)
	}
	s := pathParser{rest: text, all: text}
	for {
		if len(paths) == maxPaths {
			return nil, s.errorf("more than %d", maxPaths)
		}
		begin := len(s.all) - len(s.rest)
		steps, err := s.path()
		if err != nil {
			return nil, err
		}
		paths = append(paths, parsedPath{text[begin : len(s.all)-len(s.rest)], steps})
		if s.rest == "" {
			return paths, nil
		}
		if !s.take(",") {
			return nil, s.errorf("expected a dot, a bracket or a comma")
		}
	}
}

func (s *pathParser) take(what string) bool {
	rest, ok := strings.CutPrefix(s.rest, what)
	if ok {
		s.rest = rest
	}
	return ok
}

func (s *pathParser) errorf(format string, args ...any) error {
	return fmt.Errorf("%w: at offset %d of %q: %s", ErrPath, len(s.all)-len(s.rest), s.all, fmt.Sprintf(format, args...))
}

// path parses one path.
func (s *pathParser) path() (steps []step, err error) {
	for {
		var next step
		switch depth := len(steps); {
		case depth == maxPathDepth:
			return nil, s.errorf("deeper than %d", maxPathDepth)
		case depth > 0 && s.take("[*]"):
			next.kind = stepEach
		case depth > 0 && s.take("[?"):
			next, err = s.filter()
		case depth > 0 && len(s.rest) > 1 && s.rest[0] == '[' && isDigit(s.rest[1]):
			next, err = s.indexed()
		case s.take("["):
			next.name, err = s.quoted("]")
		case depth == 0 || s.take("."):
			if next.name = s.name(); next.name == "" {
				err = s.errorf("expected a name of letters, digits, - and _, or quoted as in ['a.b/c']")
			}
		default:
			return steps, nil
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, next)
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (s *pathParser) name() string {
	end := strings.IndexFunc(s.rest, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
	})
	if end < 0 {
		end = len(s.rest)
	}
	name := s.rest[:end]
	s.rest = s.rest[end:]
	return name
}

// quoted parses a name in single or double quotes, and what follows it. The name cannot
// contain its quote.
func (s *pathParser) quoted(end string) (string, error) {
	if s.rest == "" || s.rest[0] != '\'' && s.rest[0] != '"' {
		return "", s.errorf("expected [*], an index or a quoted name")
	}
	name, rest, ok := strings.Cut(s.rest[1:], s.rest[:1]+end)
	if !ok || name == "" || strings.Contains(name, s.rest[:1]) {
		return "", s.errorf("expected a name and %s%s", s.rest[:1], end)
	}
	s.rest = rest
	return name, nil
}

// indexed parses the index of an element, in brackets.
func (s *pathParser) indexed() (step, error) {
	digits, rest, ok := strings.Cut(s.rest[1:], "]")
	index, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil {
		return step{}, s.errorf("expected an index such as [0]")
	}
	s.rest = rest
	return step{kind: stepIndex, index: int(index)}, nil
}

// filter parses the condition of an element, after its bracket and question mark.
func (s *pathParser) filter() (step, error) {
	if s.take("(@.") {
		if name := s.name(); name != "" && s.take("==") {
			value, err := s.quoted(")]")
			return step{kind: stepWhere, name: name, value: value}, err
		}
	}
	return step{}, s.errorf(`expected a condition such as [?(@.type=="Ready")]`)
}

// A Step is a part of a path. Exactly one of its kinds is set: a step without Each,
// Element and Where is the member with the name Member.
type Step struct {
	// Member is the name of a member; with Where, that of the member with the value.
	Member string
	// Each selects each element of an array: [*].
	Each bool
	// Element selects the element at Index: [0].
	Element bool
	Index   int
	// Where selects the first element whose Member has this Value.
	Where bool
	Value string
}

// ParseSteps parses paths separated by commas, as [ParseRows] does, and returns the text
// and the steps of each.
//
// Errors wrap [ErrPath].
func ParseSteps(text string) (paths []string, steps [][]Step, err error) {
	parsed, err := parsePaths(text)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range parsed {
		var all []Step
		for _, s := range path.steps {
			all = append(all, Step{
				Member: s.name, Each: s.kind == stepEach, Element: s.kind == stepIndex, Index: s.index,
				Where: s.kind == stepWhere, Value: s.value,
			})
		}
		paths, steps = append(paths, path.text), append(steps, all)
	}
	return paths, steps, nil
}
