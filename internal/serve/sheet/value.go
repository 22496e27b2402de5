// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
)

// shown returns the value of an object as it is in a cell: nil, string, float64 or bool.
// complete is false for an object or array, and a text that is too long: such a cell is
// read-only.
func shown(value json.RawMessage) (cell any, complete bool) {
	if isNull(value) {
		return nil, true
	}
	switch value[0] {
	case '"':
		var text string
		json.Unmarshal(value, &text) //nolint:errcheck // valid JSON
		cut := cutText(text)
		if text == "" {
			return nil, true
		}
		return printable(cut), cut == text
	case 't', 'f':
		return value[0] == 't', true
	case '{', '[':
		var compact bytes.Buffer
		if json.Compact(&compact, value) != nil {
			return string(value), false
		}
		return printable(cutText(string(escapeXML(compact.Bytes())))), false
	}
	if n, err := strconv.ParseFloat(string(value), 64); err == nil && numberText(n) == plainNumber(string(value)) {
		return n, true
	}
	return string(value), true // it has more digits than a cell
}

// maxDigits is how many digits of a number spreadsheets have.
const maxDigits = 15

// cellNumber returns a number as the value of a cell. An integer with more digits than a cell
// has is a text.
func cellNumber(text string) (any, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && len(text) > maxDigits && !strings.ContainsAny(text, ".eE") && numberText(n) != text {
		return text, nil
	}
	return n, err
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || value[0] == 'n' }

// numberText returns a number with the digits that spreadsheets have.
func numberText(n float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(n, 'g', maxDigits, 64), 64)
	if err != nil || math.IsInf(rounded, 0) {
		rounded = n
	}
	if math.Abs(rounded) >= 1e21 || rounded != 0 && math.Abs(rounded) < 1e-6 {
		return strconv.FormatFloat(rounded, 'g', -1, 64)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// plainNumber returns a number of JSON in the form of numberText, but with all its digits.
func plainNumber(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	if math.Abs(n) >= 1e21 || n != 0 && math.Abs(n) < 1e-6 {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// cellText returns the value of a cell as the text that Kubernetes has for it.
func cellText(cell any) string {
	switch v := cell.(type) {
	case string:
		return v
	case float64:
		return numberText(v)
	case bool:
		return strconv.FormatBool(v)
	case ErrorValue:
		return string(v)
	}
	return ""
}

// same reports whether a cell, as it was read, still has the value of an object. Programs
// write a number as a text and back, and change the ends of lines and characters that are
// not printable.
func same(value json.RawMessage, cell any) bool {
	was, _ := shown(value)
	if was == cell {
		return true
	}
	if was == nil || cell == nil {
		return cellText(was) == "" && cellText(cell) == ""
	}
	a, aIsNumber := was.(float64)
	if b, ok := cell.(float64); ok && aIsNumber {
		return numberText(a) == numberText(b)
	}
	return normalized(cellText(was)) == normalized(cellText(cell))
}

func normalized(text string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) && r != '\t' && r != '\n' || r == unprintable {
			return -1
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}

// unprintable replaces characters that XML does not have.
const unprintable = '\uFFFD'

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == 0xFFFE || r == 0xFFFF }

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) && !strings.ContainsRune("\t\n\r\x7f", r) {
			return unprintable
		}
		return r
	}, text)
}

// cutText returns as much of a text as a cell can have.
func cutText(text string) string {
	units, keep := 0, 0
	for i, r := range text {
		if units < maxText {
			keep = i
		}
		if units += max(1, utf16.RuneLen(r)); units > maxText {
			return text[:keep] + "…"
		}
	}
	return text
}

// looksLikeFormula reports whether a program that edits the text would take it for a
// formula.
func looksLikeFormula(text string) bool {
	return text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0]))
}
