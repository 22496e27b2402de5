// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/termtext"
	"github.com/watchkeeper/watchkeeper/internal/explain/change"
)

// formats are those of most commands.
var formats = []string{"text", "json", "yaml"}

// An output holds the flags of a command's output.
type output struct {
	zone
	format string // text, json or yaml
	color  string // auto, always or never
	noise  bool
	patch  bool

	colored bool
}

func (o *output) addFlags(f *pflag.FlagSet) {
	f.BoolVarP(&o.patch, "patch", "p", false, "show changes as YAML diffs")
	f.BoolVar(&o.noise, "show-noise", false, "show noise: changes of managedFields, heartbeats, lease renewals, counters")
	o.addFormatFlags(f, "text, json or yaml")
}

// addFormatFlags adds the flags of a command that shows no changes; formats are those of its
// output.
func (o *output) addFormatFlags(f *pflag.FlagSet, formats string) {
	f.StringVarP(&o.format, "output", "o", "text", "output format: "+formats)
	o.zone.addFlags(f)
	f.StringVar(&o.color, "color", "auto", "colours: auto, always or never; with NO_COLOR, auto means never")
}

func (o *output) prepare(s streams) error {
	switch o.format {
	case "text", "json", "yaml":
	default:
		return fmt.Errorf("--output %q is unknown: use text, json or yaml", o.format)
	}
	switch o.color {
	case "auto":
		o.colored = terminal(s.out) && os.Getenv("NO_COLOR") == "" && !dumb()
	case "always", "never":
		o.colored = o.color == "always"
	default:
		return fmt.Errorf("--color %q is unknown: use auto, always or never", o.color)
	}
	return nil
}

// dumb reports whether the terminal supports neither colours nor scrolling.
func dumb() bool { return os.Getenv("TERM") == "dumb" }

// terminal reports whether a stream is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colours, as in git.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
	bold   = "1"
)

func (o *output) paint(color, text string) string {
	if !o.colored || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// marshal prints a value as JSON or YAML.
func (o *output) marshal(w io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "    ")
	if o.format == "yaml" && err == nil {
		text, err = toYAML(text)
	} else {
		text = append(text, '\n')
	}
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// diff prints the unified YAML diff of two JSON objects; either may be empty.
func (o *output) diff(w io.Writer, name string, before, after json.RawMessage) error {
	old, err := o.yaml(before)
	if err != nil {
		return err
	}
	now, err := o.yaml(after)
	if err != nil {
		return err
	}
	name = termtext.Plain(name)
	unified, err := udiff.ToUnified("a/"+name, "b/"+name, old, udiff.Lines(old, now), udiff.DefaultContextLines)
	if err != nil {
		return err
	}
	longer := 0
	for line := range strings.Lines(unified) {
		line = termtext.Line(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			line = o.paint(bold, line)
		case strings.HasPrefix(line, "@@"):
			line, longer = renumber(line, longer)
			line = o.paint(cyan, line)
		case strings.HasPrefix(line, "-"):
			line = o.paint(red, line)
		case strings.HasPrefix(line, "+"):
			line = o.paint(green, line)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@$`)

// renumber corrects the line at which a hunk begins in the new text: go-udiff leaves out the
// lines between two changes of one hunk. longer is by how many lines the hunks before have
// made the text longer; renumber returns it with this hunk.
func renumber(header string, longer int) (string, int) {
	m := hunkHeader.FindStringSubmatch(header)
	if m == nil || m[1] == "0" || m[3] == "0" {
		return header, longer // one of the texts is empty
	}
	return fmt.Sprintf("@@ -%s%s +%d%s @@", m[1], m[2], number(m[1])+longer, m[4]), longer + number(m[4]) - number(m[2])
}

// number reads a number of a header; a count that is 1 is left out.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(cmp.Or(text, "1"), ","))
	if err != nil {
		panic(err) // the header has only digits there
	}
	return n
}

// yaml converts a JSON object to YAML, without noise unless it is shown.
func (o *output) yaml(object json.RawMessage) (string, error) {
	if len(object) == 0 {
		return "", nil
	}
	if !o.noise {
		tree, err := change.Quiet(object)
		if err != nil {
			return "", err
		}
		if object, err = json.Marshal(tree); err != nil {
			return "", err
		}
	}
	text, err := toYAML(object)
	return string(text), err
}

// toYAML converts JSON to YAML. It escapes the characters that YAML does not allow, and JSON
// does.
func toYAML(text []byte) ([]byte, error) {
	return yaml.JSONToYAML(notInYAML.ReplaceAllFunc(text, func(c []byte) []byte {
		r, _ := utf8.DecodeRune(c)
		return fmt.Appendf(nil, `\u%04x`, r)
	}))
}

// notInYAML matches the characters that are not printable in YAML 1.2 (5.1), but those that
// JSON escapes.
var notInYAML = regexp.MustCompile(`[\x{7f}-\x{84}\x{86}-\x{9f}\x{fffe}\x{ffff}]`)

// guarded returns a writer to w that keeps texts of the cluster from controlling a terminal.
// JSON and YAML for programs stay as they are.
func (o *output) guarded(w io.Writer) io.Writer {
	if o.format == "text" || terminal(w) {
		return termtext.NewWriter(w, o.colored)
	}
	return w
}

// page calls print with the pager as its output if standard output is a terminal,
// else with standard output. A pager that the user closes early is no error.
func (o *output) page(s streams, print func(io.Writer) error) error {
	pager, ok := os.LookupEnv("PAGER")
	if !ok {
		pager = "less"
		if dumb() {
			pager = ""
		}
	}
	out := o.guarded(s.out)
	if !terminal(s.out) || pager == "" || pager == "cat" || o.format != "text" {
		return enough(print(out))
	}
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdout, cmd.Stderr = s.out, s.err
	cmd.Env = append(os.Environ(), "LESS="+cmp.Or(os.Getenv("LESS"), "FRX"))
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return enough(print(out))
	}
	failed := print(termtext.NewWriter(in, o.colored))
	if err := in.Close(); failed == nil {
		failed = err
	}
	if err := cmd.Wait(); err != nil && enough(failed) == nil {
		return fmt.Errorf("%s: %w: set PAGER to another pager, or to cat", pager, err)
	}
	return enough(failed)
}

// enough ignores the error of a reader that has closed its end.
func enough(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// indent indents each line.
func indent(text string) string {
	var b bytes.Buffer
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// stampFormat is a form of times that every command accepts, wherever it runs.
const stampFormat = "2006-01-02 15:04:05Z07:00"

// A zone is the time zone in which a command prints times.
type zone struct{ utc bool }

func (z *zone) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&z.utc, "utc", false, "print times in UTC; the default is the local zone")
}

// stamp formats a time. The state right after a change is that at its resourceVersion:
// a stamp has whole seconds.
func (z *zone) stamp(t time.Time) string {
	if z.utc {
		return t.UTC().Format(stampFormat)
	}
	return t.Local().Format(stampFormat)
}

// moment formats a moment that [client.when] returned.
func (z *zone) moment(text string) string {
	w, err := kube.ParseMoment(text, time.Now())
	if err != nil || w.RV != 0 || text == "now" {
		return text
	}
	return z.stamp(w.At)
}
