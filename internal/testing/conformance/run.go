// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/compare"
)

const (
	// maxRules is how many rules run at the same time. They mostly wait.
	maxRules = 16
	// ruleTimeout bounds one rule. The longest waits a minute for a bookmark.
	ruleTimeout = 5 * time.Minute
)

// A result is the outcome of a rule.
type result struct {
	rule Rule
	err  error
	// answers is how many answers were compared, own how many of them the
	// gateway served itself.
	answers, own int64
	took         time.Duration
}

// Run sets up the fixture, runs each rule as a subtest, and prints a table of the
// results. Long rules that need no fixture begin before the setup. meanwhile, unless
// nil, is called while the rules run.
func Run(t *testing.T, env *Env, meanwhile func()) {
	env.sockets = &sync.Mutex{}
	all := slices.DeleteFunc(Rules(), func(r Rule) bool { return slices.Contains(env.Without, r.Name) })
	results := make([]result, len(all))
	done := make([]chan struct{}, len(all))
	start := func(i int, slots chan struct{}) {
		own, rule := *env, all[i]
		done[i] = make(chan struct{})
		go func() {
			defer close(done[i])
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] = own.run(t.Context(), rule)
		}()
	}
	for i, rule := range all {
		if rule.slow {
			start(i, make(chan struct{}, 1))
		}
	}
	if err := env.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	slots := make(chan struct{}, maxRules)
	for i, rule := range all {
		if !rule.slow {
			start(i, slots)
		}
	}
	if meanwhile != nil {
		meanwhile()
	}
	for i, rule := range all {
		t.Run(rule.Section+"/"+rule.Name, func(t *testing.T) {
			<-done[i]
			t.Logf("took %v; the gateway served %d of %d answers itself", results[i].took.Round(time.Millisecond), results[i].own, results[i].answers)
			if err := results[i].verdict(); err != nil {
				t.Errorf("%v\n%s: %s\n(%s)", err, rule.Name, rule.Doc, rule.Source)
			}
		})
	}
	fmt.Fprint(os.Stdout, summary(results))
}

// run runs one rule, with separate counters.
func (e *Env) run(ctx context.Context, rule Rule) result {
	ctx, cancel := context.WithTimeoutCause(ctx, ruleTimeout, fmt.Errorf("not within %v", ruleTimeout))
	defer cancel()
	own := *e
	own.rule, own.answers = rule.Name, &answerCount{}
	if slices.Contains(e.Differs, rule.Name) {
		rule.Differs = -1
	}
	start := time.Now()
	err := rule.check(ctx, &own)
	return result{rule, err, own.answers.all.Load(), own.answers.own.Load(), time.Since(start)}
}

// verdict returns nil if the endpoints do not differ, or differ as the rule says.
func (r *result) verdict() error {
	switch {
	case r.rule.Differs == 0:
		return r.err
	case r.err == nil:
		return fmt.Errorf("the endpoints do not differ: remove %q from the rule, or the rule from Env.Differs", fmt.Sprint("differs ", r.rule.Differs))
	case !onlyDifferences(r.err):
		return r.err
	}
	return nil
}

// onlyDifferences reports whether an error consists only of differences.
func onlyDifferences(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !onlyDifferences(e) {
				return false
			}
		}
		return true
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		return onlyDifferences(wrapped)
	}
	_, ok := errors.AsType[*compare.Difference](err)
	return ok
}

// summary is the conformance table.
func summary(results []result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nconformance\t\trules\tsame\tdifferent (explained)\tfailing\tserved by the gateway itself\tin part\t\n")
	line := func(number, title string, in func(*result) bool) {
		var n, same, differ, failing, own, part int
		for i := range results {
			r := &results[i]
			if !in(r) {
				continue
			}
			n++
			switch {
			case r.verdict() != nil:
				failing++
			case r.rule.Differs != 0:
				differ++
			default:
				same++
			}
			switch {
			case r.answers > 0 && r.own == r.answers:
				own++
			case r.own > 0:
				part++
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", number, title, n, same, differ, failing, own, part)
	}
	for _, s := range Sections {
		line(s.Number, s.Title, func(r *result) bool { return r.rule.Section == s.Number })
	}
	line("", "all", func(*result) bool { return true })
	w.Flush()
	fmt.Fprintln(&b, "passed through to the API server as a whole:")
	for _, s := range Sections {
		var passed []string
		for _, r := range results {
			if r.rule.Section == s.Number && r.own == 0 {
				passed = append(passed, r.rule.Name)
			}
		}
		fmt.Fprintf(&b, "  %s (%d) %s\n", s.Number, len(passed), strings.Join(passed, ", "))
	}
	return b.String()
}
