// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// A script is a rule written as data. The head runs first; then all blocks run
// at the same time, each with its own copy of the variables.
type script struct {
	head   block
	blocks []block
}

// A block's statements run in turn, once for every combination of the rows of
// its tables.
type block struct {
	tables     []table
	statements []statement
}

// A table assigns values to variables, row by row.
type table struct {
	line  int
	names []string
	rows  [][]string
}

// A statement is a line of a block, with the lines that belong to it: the
// headers and expectations of a request.
type statement struct {
	line    int
	verb    string
	text    string // what follows the verb
	details []statement
}

// changes reports whether later statements may depend on this one: it is not a
// request, or it keeps a value from the answer in a variable.
func (s *statement) changes() bool {
	if s.verb == ">" {
		return slices.ContainsFunc(s.details, func(d statement) bool { return d.verb == "keep" })
	}
	return s.verb != "negotiate" && s.verb != "pages"
}

// loadRules reads the rules of a section's files. code has the rules that are
// written in Go, by name.
func loadRules(files fs.FS, section Section, code map[string]checkFunc) ([]Rule, error) {
	var all []Rule
	for _, file := range section.Files {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		rules, err := parseFile(file, text, code)
		if err != nil {
			return nil, err
		}
		for i := range rules {
			rules[i].Section = section.Number
		}
		all = append(all, rules...)
	}
	return all, nil
}

// parseFile reads a txtar archive with one rule per entry.
func parseFile(file string, text []byte, code map[string]checkFunc) ([]Rule, error) {
	archive := txtar.Parse(text)
	if len(archive.Files) == 0 {
		return nil, fmt.Errorf("%s: no rules", file)
	}
	_, source, ok := strings.Cut(string(archive.Comment), "\n# Source: ")
	if !ok {
		return nil, fmt.Errorf("%s: its comment has no Source line", file)
	}
	source, _, _ = strings.Cut(source, "\n")
	line := 1 + strings.Count(string(archive.Comment), "\n")
	var rules []Rule
	for _, f := range archive.Files {
		r := Rule{Name: f.Name, Source: source, file: file}
		p := parser{rule: &r, file: file, line: line}
		if err := p.parse(string(f.Data), code[f.Name]); err != nil {
			return nil, fmt.Errorf("%s:%d: rule %s: %w", file, p.line, f.Name, err)
		}
		rules = append(rules, r)
		line += 1 + strings.Count(string(f.Data), "\n")
	}
	return rules, nil
}

type parser struct {
	rule   *Rule
	file   string
	line   int // of the file, for errors
	code   bool
	script script
}

var ruleName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)

func (p *parser) parse(text string, code checkFunc) error {
	if !ruleName.MatchString(p.rule.Name) {
		return errors.New("a rule's name is one word that begins with a capital letter")
	}
	current, first := &p.script.head, true
	for line := range strings.Lines(text) {
		p.line++
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "":
			current, first = nil, false
			continue
		case strings.HasPrefix(line, "#"):
			if first {
				p.rule.Doc = strings.TrimSpace(p.rule.Doc + " " + strings.TrimSpace(line[1:]))
			}
			continue
		case current == nil:
			p.script.blocks = append(p.script.blocks, block{})
			current = &p.script.blocks[len(p.script.blocks)-1]
		}
		if err := p.add(current, line); err != nil {
			return err
		}
	}
	switch empty := len(p.script.blocks) == 0 && len(p.script.head.statements) == 0; {
	case p.rule.Doc == "":
		return errors.New("no comment says what the rule is")
	case p.code && code == nil:
		return errors.New("there is no Go function for it")
	case p.code && !empty:
		return errors.New("it is written in Go and has statements")
	case p.code:
		p.rule.check, p.rule.inGo = code, true
		return nil
	case code != nil:
		return errors.New("it is written in Go, and the file does not say so")
	case len(p.script.blocks) == 0:
		return errors.New("no statements")
	case len(p.script.head.tables) > 0:
		return errors.New("a table belongs to a block, not to the head")
	}
	s := p.script
	p.rule.check = func(ctx context.Context, e *Env) error { return s.run(ctx, e, p.file) }
	return s.verify(&p.line)
}

// add takes one line.
func (p *parser) add(b *block, line string) error {
	if line[0] == ' ' {
		return p.row(b, line)
	}
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	head := b == &p.script.head
	switch {
	case head && verb == "code":
		p.code = true
		return nil
	case head && verb == "slow":
		p.rule.slow = true
		return nil
	case head && verb == "source":
		p.rule.Source = rest
		return nil
	case head && verb == "differs":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 1 {
			return fmt.Errorf("differs %q: it takes the number of a line in docs/semantics.md", rest)
		}
		p.rule.Differs = n
		return nil
	case verb == "each":
		if len(b.statements) > 0 {
			return errors.New("a table comes before the block's statements")
		}
		names := cells(rest)
		if slices.ContainsFunc(names, func(n string) bool { return !variableName.MatchString(n) }) {
			return fmt.Errorf("each %s: it takes the names of variables", rest)
		}
		b.tables = append(b.tables, table{line: p.line, names: names})
		return nil
	}
	if n := len(b.statements); n > 0 && belongs(b.statements[n-1], verb, rest) {
		last := &b.statements[n-1]
		last.details = append(last.details, statement{line: p.line, verb: verb, text: rest})
		return nil
	}
	if _, ok := verbs[verb]; !ok {
		return fmt.Errorf("unknown word %q", verb)
	}
	b.statements = append(b.statements, statement{line: p.line, verb: verb, text: rest})
	return nil
}

// row takes a row of the last table.
func (p *parser) row(b *block, line string) error {
	if len(b.tables) == 0 || len(b.statements) > 0 {
		return errors.New("an indented line that is in no table")
	}
	t := &b.tables[len(b.tables)-1]
	row := []string{strings.TrimSpace(line)}
	if len(t.names) > 1 {
		row = cells(line)
	}
	if len(row) != len(t.names) {
		return fmt.Errorf("a row of %d cells in a table of %d columns", len(row), len(t.names))
	}
	t.rows = append(t.rows, row)
	return nil
}

// cells splits a line of a table.
func cells(line string) []string {
	all := strings.Split(line, "=>")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// unquoted takes the backquotes off a text that begins or ends with spaces.
func unquoted(text string) string {
	if len(text) >= 2 && text[0] == '`' && text[len(text)-1] == '`' {
		return text[1 : len(text)-1]
	}
	return text
}

var header = regexp.MustCompile(`^([A-Z][A-Za-z-]*):(?: (.*))?$`)

// belongs reports whether a line is a detail of a statement, not a statement itself.
func belongs(s statement, verb, rest string) bool {
	switch s.verb {
	case ">":
		if verb == ">" {
			return header.MatchString(rest)
		}
		return expectations[verb] != nil || verb == "keep" || verb == "messages"
	case "open":
		return verb == ">" && header.MatchString(rest) || verb == "mask" || verb == "every-bookmark"
	case "negotiate":
		return verb == ">" && header.MatchString(rest) || verb == "answers"
	}
	return false
}

// verify checks a script without its requests: the variables have to be known, and
// the texts of the statements well-formed. It sets line to that of a mistake.
func (s *script) verify(line *int) error {
	known := maps.Clone(constants)
	for _, name := range []string{"old", "weakToken"} {
		known[name] = "1"
	}
	if err := s.head.verify(line, known); err != nil {
		return err
	}
	for i := range s.blocks {
		b := &s.blocks[i]
		for _, t := range b.tables {
			*line = t.line
			if len(t.rows) == 0 {
				return errors.New("a table without rows")
			}
		}
		if len(b.statements) == 0 {
			return errors.New("a block without statements")
		}
		err := b.each(known, func(vars map[string]string) error { return b.verify(line, vars) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *block) verify(line *int, vars map[string]string) error {
	for _, s := range b.statements {
		*line = s.line
		text, err := expand(s.text, vars)
		if err != nil {
			return err
		}
		details, err := expandAll(s.details, vars, line)
		if err != nil {
			return err
		}
		*line = s.line
		if err := verbs[s.verb].verify(text, details, line, vars); err != nil {
			return err
		}
	}
	return nil
}

// each calls a function for every combination of rows.
func (b *block) each(vars map[string]string, do func(map[string]string) error) error {
	return eachRow(b.tables, vars, do)
}

func eachRow(tables []table, vars map[string]string, do func(map[string]string) error) error {
	if len(tables) == 0 {
		return do(maps.Clone(vars))
	}
	for _, row := range tables[0].rows {
		inner := maps.Clone(vars)
		for i, name := range tables[0].names {
			inner[name] = row[i]
		}
		if err := eachRow(tables[1:], inner, do); err != nil {
			return err
		}
	}
	return nil
}

var (
	variableName = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	variable     = regexp.MustCompile(`\$(?:([a-z][A-Za-z0-9]*)|\{([a-z][A-Za-z0-9]*)((?:\|[a-z0-9]+)*)\})`)
)

// expand puts the values of variables into a text: $name, or ${name|filter}. A
// value may refer to other variables.
func expand(text string, vars map[string]string) (string, error) {
	return expandTo(text, vars, 8)
}

func expandTo(text string, vars map[string]string, depth int) (string, error) {
	if depth == 0 {
		return "", fmt.Errorf("variables that refer to each other: %s", text)
	}
	var failed error
	out := variable.ReplaceAllStringFunc(text, func(found string) string {
		m := variable.FindStringSubmatch(found)
		name := m[1] + m[2]
		value, ok := vars[name]
		if !ok {
			failed = fmt.Errorf("no variable %s", found)
			return found
		}
		value, err := expandTo(unquoted(value), vars, depth-1)
		if err != nil {
			failed = err
		}
		for filter := range strings.SplitSeq(strings.TrimPrefix(m[3], "|"), "|") {
			switch apply, ok := filters[filter]; {
			case ok:
				value = apply(value)
			case filter != "":
				failed = fmt.Errorf("no filter %q", filter)
			}
		}
		return value
	})
	return out, failed
}

func expandAll(all []statement, vars map[string]string, line *int) ([]statement, error) {
	out := slices.Clone(all)
	for i := range out {
		*line = out[i].line
		var err error
		if out[i].text, err = expand(out[i].text, vars); err != nil {
			return nil, err
		}
	}
	return out, nil
}
