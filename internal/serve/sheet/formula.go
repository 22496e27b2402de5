// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/xuri/efp"
)

//go:embed functions.json
var functionsJSON []byte

// functions are the names of the functions that formulas may have: those whose corpus
// (testdata/formulas.json) LibreOffice and excelize, and IronCalc in the page, agree on.
var functions = func() (names []string) {
	if err := json.Unmarshal(functionsJSON, &names); err != nil {
		panic(err)
	}
	return names
}()

// Functions returns the names of the functions that formulas may have, sorted.
func Functions() []string { return slices.Clone(functions) }

// futurePrefix stands before the names of functions that are newer than the file format.
// Excel and LibreOffice do not find them without it.
const futurePrefix = "_xlfn."

var futureFunctions = []string{"CONCAT", "DAYS", "IFNA", "IFS", "MAXIFS", "MINIFS", "SWITCH", "TEXTJOIN", "XOR"}

// maxFormula is the number of characters of a formula in Excel.
const maxFormula = 8192

// function matches the name of a function and its parenthesis.
var function = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_.]*[ \t\r\n]*\(`)

// Check returns why a formula, which begins with =, is not supported; nil if it is.
func Check(formula string) error {
	rest, ok := strings.CutPrefix(formula, "=")
	switch {
	case !ok:
		return errors.New("a formula begins with =")
	case len(rest) > maxFormula:
		return fmt.Errorf("the formula is longer than %d characters", maxFormula)
	case strings.TrimSpace(rest) == "":
		return errors.New("the formula is empty")
	}
	var refused error
	balance := 0
	complete := outsideQuotes(rest, func(text string) string {
		for _, name := range function.FindAllString(text, -1) {
			name = strings.ToUpper(strings.TrimRight(name, "( \t\r\n"))
			name = strings.TrimPrefix(name, strings.ToUpper(futurePrefix))
			if refused == nil && !slices.Contains(functions, name) {
				refused = fmt.Errorf("the function %s is not supported", name)
			}
		}
		// Links to other files, structured references and arrays.
		for _, c := range "[]{}" {
			if refused == nil && strings.ContainsRune(text, c) {
				refused = fmt.Errorf("%q is not supported in a formula", c)
			}
		}
		balance += strings.Count(text, "(") - strings.Count(text, ")")
		return text
	})
	switch {
	case refused != nil:
		return refused
	case complete == "" || balance != 0:
		return errors.New("the formula has a quote or parenthesis without its other")
	}
	parser := efp.ExcelParser()
	for _, token := range parser.Parse(rest) {
		if token.TType == efp.TokenTypeUnknown {
			return fmt.Errorf("%q is not understood in a formula", token.TValue)
		}
	}
	return nil
}

// outsideQuotes returns a formula in which the parts outside of texts and quoted names of
// tabs are replaced; "" if a quote has no end.
func outsideQuotes(formula string, replace func(string) string) string {
	var out strings.Builder
	for formula != "" {
		i := strings.IndexAny(formula, `"'`)
		if i < 0 {
			out.WriteString(replace(formula))
			break
		}
		end := strings.IndexByte(formula[i+1:], formula[i])
		if end < 0 {
			return ""
		}
		if i > 0 {
			out.WriteString(replace(formula[:i]))
		}
		out.WriteString(formula[i : i+end+2])
		formula = formula[i+end+2:]
	}
	return out.String()
}

// inFile returns a formula as it is in a file: without =, and with the prefixes of newer
// functions.
func inFile(formula string) string {
	formula = strings.TrimPrefix(formula, "=")
	return cmp.Or(outsideQuotes(formula, func(text string) string {
		return function.ReplaceAllStringFunc(text, func(call string) string {
			if slices.Contains(futureFunctions, strings.ToUpper(strings.TrimRight(call, "( \t\r\n"))) {
				return futurePrefix + call
			}
			return call
		})
	}), formula)
}

// fromFile is the reverse of inFile.
func fromFile(formula string) string {
	return "=" + cmp.Or(outsideQuotes(formula, func(text string) string {
		return strings.ReplaceAll(strings.ReplaceAll(text, "_xlfn._xlws.", ""), futurePrefix, "")
	}), formula)
}
