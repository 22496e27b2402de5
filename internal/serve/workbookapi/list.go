// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package workbookapi

import (
	"encoding/json"
	"strings"

	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

// List returns a list as an .xlsx file with one tab, which "watchkeeper sheet" can apply.
// The error wraps [sheet.ErrInvalid] if a workbook cannot have the list, or the budget is too
// small.
func List(b *sheet.Budget, f wire.Form, h wire.ListHead, items []*scan.Object) (*wire.Body, error) {
	tab := sheet.Tab{
		Name: sheet.TabName(f.Sheet.Resource.Resource, nil), Resource: sheet.Resource(f.Sheet.Resource), Kind: strings.TrimSuffix(h.Kind, "List"),
		Namespace: f.Sheet.Namespace, Selector: f.Sheet.Selector, Columns: f.Fields.Columns()[wire.RowColumns:], Rows: make([]sheet.Row, len(items)),
	}
	var row []byte
	for i, o := range items {
		row = f.Fields.AppendRow(row[:0], o.JSON)
		if err := b.TakeJSON(row); err != nil {
			return nil, err
		}
		var values []json.RawMessage
		if err := json.Unmarshal(row, &values); err != nil {
			return nil, err
		}
		r := &tab.Rows[i]
		for k, into := range []*string{&r.Namespace, &r.Name, &r.UID} {
			if err := json.Unmarshal(values[k], into); err != nil {
				return nil, err
			}
		}
		r.Values = values[wire.RowColumns:]
	}
	book := sheet.Workbook{Tabs: []sheet.Tab{tab}}
	file, err := book.XLSX(b)
	return wire.NewBody(string(file)), err
}
