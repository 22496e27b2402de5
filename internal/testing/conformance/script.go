// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

// maxBlocks is how many blocks of one rule run at the same time.
const maxBlocks = 16

// constants are the variables of every script. old and weakToken, which depend on the
// cluster, are added to them.
var constants = map[string]string{
	"core": core, "configmaps": configMaps, "pods": pods, "custom": custom, "gadgets": gadgets, "beacons": beacons,
	"oldgadgets": oldGadgets, "large": largeList, "all": strings.Join(allConfigMaps, " "),
	"json": compare.JSON, "yaml": compare.YAML, "protobuf": compare.Protobuf, "protobufwatch": compare.ProtobufWatch,
	"table": tableV1, "tableBeta": tableV1beta1, "tableYAML": tableYAML,
	"metadata": metadata, "metadataYAML": metadataYAML, "metadataProtobuf": metadataProtobuf,
	"metadataList": metadataList, "metadataListYAML": metadataListYAML, "metadataListProtobuf": metadataListProtobuf,
	"kubectl": kubectlAccept, "initialEvents": initialEvents, "future": future, "nl": "\n", "indent": "\n  ",
	"doodad": `"apiVersion":"conformance.example.com/v1","kind":"Doodad"`,
}

// filters are the filters of ${name|filter}.
var filters = map[string]func(string) string{
	"query":  url.QueryEscape,
	"base64": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
}

// A verb is a kind of statement.
type verb struct {
	// verify reports what is wrong with a statement, and adds the variables
	// that the statement sets.
	verify func(text string, details []statement, line *int, vars map[string]string) error
	run    func(ctx context.Context, x *execution, text string, details []statement) error
}

var verbs = map[string]verb{
	">":         {verifyRequest, runRequest},
	"negotiate": {verifyNegotiate, runNegotiate},
	"pages":     {verifyPages, runPages},
	"sync":      {arguments(1, "rv", "exact"), runSync},
	"fresh":     {verifyFresh, runFresh},
	"write":     {verifyWrite, runWrite},
	"open":      {verifyRequest, runOpen},
	"events":    {verifyEvents, runEvents},
	"until":     {verifyEvents, runUntil},
	"to-end":    {verifyEvents, runToEnd},
	"frame":     {verifyFrame, runFrame},
	"let":       {verifyLet, runLet},
	"wait":      {verifyWait, runWait},
}

// An execution is the execution of a block.
type execution struct {
	*Env
	vars    map[string]string
	spaces  *spaces
	open    *compare.Pair   // the open watch
	frames  []compare.Frame // last read from the API server
	written uint64          // RV of the last write
}

// spaces numbers the namespaces of a rule.
type spaces struct {
	mu sync.Mutex
	n  int
}

func (s *spaces) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return s.n
}

// run runs a script. Errors name the line of its file.
func (s *script) run(ctx context.Context, e *Env, file string) error {
	x := &execution{Env: e, vars: maps.Clone(constants), spaces: &spaces{}}
	x.vars["old"], x.vars["weakToken"] = strconv.FormatUint(e.old, 10), e.token
	if err := x.block(ctx, &s.head, file); err != nil {
		return err
	}
	var todo []func() error
	for i := range s.blocks {
		b := &s.blocks[i]
		_ = b.each(x.vars, func(vars map[string]string) error {
			todo = append(todo, func() error {
				own := *x
				own.vars = vars
				return own.block(ctx, b, file)
			})
			return nil
		})
	}
	return together(maxBlocks, todo...)
}

// block runs the statements of a block. It ends at the failure of a statement on which
// later ones may depend.
func (x *execution) block(ctx context.Context, b *block, file string) error {
	defer x.close()
	var errs []error
	for _, s := range b.statements {
		var line int
		text, err := expand(s.text, x.vars)
		if err != nil {
			return err
		}
		details, err := expandAll(s.details, x.vars, &line)
		if err != nil {
			return err
		}
		if err := verbs[s.verb].run(ctx, x, text, details); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, s.line, err))
			if s.changes() {
				break
			}
		}
	}
	return errors.Join(errs...)
}

func (x *execution) close() {
	if x.open != nil {
		x.open.Close()
		x.open = nil
	}
}

// arguments verifies the number of words of a statement.
func arguments(n int, sets ...string) func(string, []statement, *int, map[string]string) error {
	return func(text string, _ []statement, _ *int, vars map[string]string) error {
		if got := len(strings.Fields(text)); got != n {
			return fmt.Errorf("%d words after the first, not %d", n, got)
		}
		for _, name := range sets {
			vars[name] = "1"
		}
		return nil
	}
}

func verifyPages(text string, details []statement, line *int, vars map[string]string) error {
	if vars["rv"] == "" {
		return errors.New("pages needs a sync before it")
	}
	return arguments(2)(text, details, line, vars)
}

func runPages(ctx context.Context, x *execution, text string, _ []statement) error {
	path, query, _ := strings.Cut(text, " ")
	return x.pages(ctx, path, query, x.vars["rv"])
}

func runSync(ctx context.Context, x *execution, text string, _ []statement) error {
	rv, err := x.at(ctx, text, x.written)
	x.vars["rv"], x.vars["exact"] = rv, exactly(rv)
	return err
}

// groups has the path prefixes of the resources that fresh supports.
var groups = map[string]string{
	"configmaps": "/api/v1", "secrets": "/api/v1", "pods": "/api/v1", "jobs": "/apis/batch/v1", "doodads": "/apis/conformance.example.com/v1",
}

func verifyFresh(text string, _ []statement, _ *int, vars map[string]string) error {
	resource, _, _ := strings.Cut(text, " ")
	if groups[resource] == "" {
		return fmt.Errorf("fresh %s: it takes one of %v", resource, slices.Sorted(maps.Keys(groups)))
	}
	for _, name := range []string{"fresh", "space", "rv", "exact"} {
		vars[name] = "/1"
	}
	return nil
}

// runFresh creates a namespace with objects and waits until both endpoints have them.
func runFresh(ctx context.Context, x *execution, text string, _ []statement) error {
	var suffix string
	if n := x.spaces.next(); n > 1 {
		suffix = "-" + strconv.Itoa(n)
	}
	space, err := x.namespace(ctx, suffix)
	if err != nil {
		return err
	}
	words := strings.Fields(text)
	path := groups[words[0]] + "/namespaces/" + space + "/" + words[0]
	for _, name := range words[1:] {
		object := `{"metadata":{"name":"` + name + `"}}`
		switch words[0] {
		case "doodads":
			object = doodad(name, `"spec":{}`)
		case "pods":
			object = pod(name)
		}
		if x.written, err = x.create(ctx, path, object); err != nil {
			return err
		}
	}
	x.vars["fresh"], x.vars["space"] = path, space
	return runSync(ctx, x, path, nil)
}

func verifyWrite(text string, _ []statement, _ *int, vars map[string]string) error {
	words := strings.SplitN(text, " ", 3)
	if len(words) < 2 || !slices.Contains([]string{http.MethodPost, http.MethodPatch, http.MethodDelete}, words[0]) {
		return fmt.Errorf("write %s: it takes POST, PATCH or DELETE, a path and a body", text)
	}
	vars["written"] = "1"
	return nil
}

// runWrite changes something at the API server.
func runWrite(ctx context.Context, x *execution, text string, _ []statement) error {
	words := append(strings.SplitN(text, " ", 3), "")
	var err error
	x.written, err = x.change(ctx, words[0], words[1], words[2])
	x.vars["written"] = strconv.FormatUint(x.written, 10)
	return err
}

// runOpen opens a watch at both endpoints. It is closed at the next open or at the end
// of the block.
func runOpen(ctx context.Context, x *execution, text string, details []statement) error {
	x.close()
	options, err := parseRequest("GET "+text, details)
	if err != nil {
		return err
	}
	x.open, err = x.watch(ctx, text, options...)
	return err
}

func verifyEvents(text string, _ []statement, _ *int, vars map[string]string) error {
	vars["last"] = "1"
	if text == "" {
		return errors.New("no events; none is -")
	}
	return nil
}

// runEvents reads as many events as are expected.
func runEvents(ctx context.Context, x *execution, text string, _ []statement) error {
	want := eventList(text)
	return x.read(ctx, count(len(want)), func(got []compare.Frame) error { return sequence(got, want...) })
}

// runUntil reads up to an event, whatever comes before it.
func runUntil(ctx context.Context, x *execution, text string, _ []statement) error {
	return x.read(ctx, func(all []compare.Frame) bool { return brief(all[len(all)-1:])[0] == text },
		func([]compare.Frame) error { return nil })
}

// runToEnd reads the watch to its clean end.
func runToEnd(ctx context.Context, x *execution, text string, _ []statement) error {
	return x.read(ctx, nil, func(got []compare.Frame) error { return sequence(got, eventList(text)...) })
}

// read reads frames of the open watch, compares them, and checks those of the API
// server.
func (x *execution) read(ctx context.Context, enough func([]compare.Frame) bool, check func([]compare.Frame) error) error {
	if x.open == nil {
		return errors.New("no watch is open")
	}
	frames, err := x.open.Until(ctx, enough)
	if _, different := errors.AsType[*compare.Difference](err); err == nil || different {
		if err := check(frames); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	x.frames = frames
	if len(frames) > 0 {
		x.vars["last"] = frames[len(frames)-1].RV
	}
	return nil
}

// frame N has TEXT, frame N lacks TEXT, frame N rv-from RV check frame N of those last
// read.
func verifyFrame(text string, _ []statement, _ *int, _ map[string]string) error {
	words := strings.SplitN(text, " ", 3)
	if len(words) == 3 && slices.Contains([]string{"has", "lacks", "rv-from"}, words[1]) {
		if n, err := strconv.Atoi(words[0]); err == nil && n > 0 {
			return nil
		}
	}
	return fmt.Errorf("frame %s: it takes a number from 1, then has, lacks or rv-from, and a text", text)
}

func runFrame(_ context.Context, x *execution, text string, _ []statement) error {
	words := strings.SplitN(text, " ", 3)
	n, err := strconv.Atoi(words[0])
	if err != nil || n > len(x.frames) {
		return fmt.Errorf("there is no frame %s", words[0])
	}
	o, err := expectations[words[1]](words[2])
	if err != nil {
		return err
	}
	var a asking
	o(&a)
	if err := a.checks[0](&compare.Answer{Body: x.frames[n-1].Object}); err != nil {
		return fmt.Errorf("the API server's frame %d, %s: %w", n, x.frames[n-1].Object, err)
	}
	return nil
}

func verifyLet(text string, _ []statement, _ *int, vars map[string]string) error {
	name, value, _ := strings.Cut(text, " ")
	if !variableName.MatchString(name) || value == "" {
		return fmt.Errorf("let %s: it takes a variable and its value", text)
	}
	vars[name] = value
	return nil
}

func runLet(_ context.Context, x *execution, text string, _ []statement) error {
	name, value, _ := strings.Cut(text, " ")
	x.vars[name] = value
	return nil
}

func verifyWait(text string, _ []statement, _ *int, _ map[string]string) error {
	_, err := time.ParseDuration(text)
	return err
}

func runWait(ctx context.Context, _ *execution, text string, _ []statement) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	return sleep(ctx, d)
}
