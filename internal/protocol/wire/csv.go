// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/scan"
)

// RowColumns is how many columns of a row come before those of the paths: namespace, name,
// uid and resourceVersion.
const RowColumns = 4

// csvColumns are the columns of a row that CSV begins with; uid and resourceVersion are
// left out.
const csvColumns = 2

// listCSV writes a list as CSV (RFC 4180): a header, and a record for each object with its
// namespace, its name and the values of the paths. The records are the same whatever the
// cache holds, so that they are made for each list.
func listCSV(paths *scan.Paths, items []*scan.Object) (*Body, error) {
	head := append([]string{"namespace", "name"}, paths.Columns()[RowColumns:]...)
	b := &Body{}
	text, err := csvText([][]string{head})
	if err != nil {
		return nil, err
	}
	b.add(text)
	err = encodeAll(b, items, func(b *Body, _ int, run []*scan.Object) error {
		records := make([][]string, 0, len(run))
		var row []byte
		for _, o := range run {
			row = paths.AppendRow(row[:0], o.JSON)
			var values []json.RawMessage
			if err := json.Unmarshal(row, &values); err != nil {
				return err
			}
			record := make([]string, 0, len(values))
			for _, value := range slices.Delete(values, csvColumns, RowColumns) {
				cell, err := csvCell(value)
				if err != nil {
					return err
				}
				record = append(record, cell)
			}
			records = append(records, record)
		}
		text, err := csvText(records)
		b.add(text)
		return err
	})
	return b, err
}

func csvText(records [][]string) (string, error) {
	var out strings.Builder
	w := csv.NewWriter(&out)
	w.UseCRLF = true
	err := w.WriteAll(records)
	return out.String(), err
}

// csvCell returns a value as a cell: the text of a string, nothing for null, JSON for
// objects and arrays.
func csvCell(value json.RawMessage) (string, error) {
	switch value[0] {
	case 'n':
		return "", nil
	case '"':
		var text string
		err := json.Unmarshal(value, &text)
		return notFormula(text), err
	}
	return string(value), nil
}

// notFormula returns a text that no spreadsheet reads as a formula: one that could be is
// preceded by an apostrophe (OWASP, "CSV injection"). Numbers are not text, and stay.
func notFormula(text string) string {
	for _, begin := range []string{"=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"} {
		if strings.HasPrefix(text, begin) {
			return "'" + text
		}
	}
	return text
}
