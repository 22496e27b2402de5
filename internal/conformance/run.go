// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/compare"
)

const (
	// atOnce is how many rules run at the same time: most of them wait.
	atOnce = 12
	// patience bounds one rule. The longest waits a minute for a bookmark.
	patience = 5 * time.Minute
)

// A result is what became of a rule.
type result struct {
	rule Rule
	err  error
	// answers were compared; own of them did the gateway give itself.
	answers, own int64
	took         time.Duration
}

// Run runs all rules, each as a subtest, and prints a table of them.
func Run(t *testing.T, env *Env) {
	all := Rules()
	results := make([]result, len(all))
	done := make([]chan struct{}, len(all))
	places := make(chan struct{}, atOnce)
	for i, rule := range all {
		done[i] = make(chan struct{})
		go func() {
			defer close(done[i])
			places <- struct{}{}
			defer func() { <-places }()
			results[i] = env.run(t.Context(), rule)
		}()
	}
	for i, rule := range all {
		t.Run(rule.Section+"/"+rule.Name(), func(t *testing.T) {
			<-done[i]
			t.Logf("took %v; the gateway gave %d of %d answers itself", results[i].took.Round(time.Millisecond), results[i].own, results[i].answers)
			if err := results[i].verdict(); err != nil {
				t.Error(err)
			}
		})
	}
	fmt.Fprint(os.Stdout, table(results))
}

// run runs one rule.
func (e *Env) run(ctx context.Context, rule Rule) result {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %v", patience))
	defer cancel()
	own := *e
	own.rule, own.asked = rule.Name(), &asked{}
	start := time.Now()
	err := rule.Check(ctx, &own)
	return result{rule, err, own.asked.answers.Load(), own.asked.own.Load(), time.Since(start)}
}

// verdict is nil when the rule turned out as the table of rules says.
func (r *result) verdict() error {
	switch {
	case r.rule.Differs == 0:
		return r.err
	case r.err == nil:
		return fmt.Errorf("it is the same: take the mark Differs: %d off the rule", r.rule.Differs)
	case !onlyDifferences(r.err):
		return r.err
	}
	return nil
}

// onlyDifferences reports whether nothing went wrong but that the endpoints do
// not do alike.
func onlyDifferences(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !onlyDifferences(e) {
				return false
			}
		}
		return true
	}
	_, ok := errors.AsType[*compare.Difference](err)
	return ok
}

// table is the summary.
func table(results []result) string {
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
				passed = append(passed, r.rule.Name())
			}
		}
		fmt.Fprintf(&b, "  %s (%d) %s\n", s.Number, len(passed), strings.Join(passed, ", "))
	}
	return b.String()
}
