// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"math"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
)

func TestCheck(t *testing.T) {
	for formula, want := range map[string]string{
		"=1+1":                            "",
		`=IF(A1="SUMX(",1,2)`:             "",
		"='SUMX('!A1+1":                   "",
		"=sum(A1:A3)":                     "",
		"=IF(A1>1,SUM(B1:B3),MAX(C1,C2))": "",
		"=_xlfn.IFS(TRUE,1)":              "",
		"=(A1+B1)*2":                      "",
		"=XLOOKUP(1,A1:A3,B1:B3)":         "the function XLOOKUP is not supported",
		"=1+webservice (\"x\")":           "the function WEBSERVICE is not supported",
		"=_xlfn.XLOOKUP(1,A1:A3,B1:B3)":   "the function XLOOKUP is not supported",
		"=IF(1,INDIRECT(\"A1\"),2)":       "the function INDIRECT is not supported",
		"=[1]Sheet1!A1":                   "'[' is not supported in a formula",
		"={1,2}":                          "'{' is not supported in a formula",
		`="a`:                             "the formula has a quote or parenthesis without its other",
		"=SUM(1":                          "the formula has a quote or parenthesis without its other",
		"1+1":                             "a formula begins with =",
		"= ":                              "the formula is empty",
	} {
		got := ""
		if err := Check(formula); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Check(%q) is %q, want %q", formula, got, want)
		}
	}
}

// TestFutureFunctions: newer functions have their prefix in a file only, and texts and
// names of tabs are left alone.
func TestFutureFunctions(t *testing.T) {
	for formula, want := range map[string]string{
		"=IFS(TRUE,1)":                  "_xlfn.IFS(TRUE,1)",
		`=IF(A1="IFS(",'IFS('!A1,1)`:    `IF(A1="IFS(",'IFS('!A1,1)`,
		"=SUMIFS(A1:A2,A1:A2,1)":        "SUMIFS(A1:A2,A1:A2,1)",
		"=1+MAXIFS(A1:A2,A1:A2,\">0\")": "1+_xlfn.MAXIFS(A1:A2,A1:A2,\">0\")",
		`="a""IFS("&CONCAT(1,2)`:        `"a""IFS("&_xlfn.CONCAT(1,2)`,
	} {
		if got := inFile(formula); got != want {
			t.Errorf("%s is %s in the file, want %s", formula, got, want)
		}
		if got := fromFile(inFile(formula)); got != formula {
			t.Errorf("%s is %s after the file", formula, got)
		}
	}
}

// TestNow: NOW and TODAY are the time here, as a spreadsheet counts: in days.
func TestNow(t *testing.T) {
	now := func() float64 {
		_, offset := time.Now().Zone()
		return 25569 + (float64(time.Now().Unix())+float64(offset))/86400
	}
	f := excelize.NewFile()
	defer f.Close()
	cells := map[string]string{"A1": "NOW()", "A2": "TODAY()", "A3": "NOW()-TODAY()", "A4": "HOUR(NOW())", "A5": "YEAR(TODAY())", "A6": "INT(NOW())=TODAY()"}
	for cell, formula := range cells {
		if err := f.SetCellFormula("Sheet1", cell, formula); err != nil {
			t.Fatal(err)
		}
	}
	const s = "Sheet1"
	before := now()
	got, err := evaluate(f, []cellRef{{s, "A1"}, {s, "A2"}, {s, "A3"}, {s, "A4"}, {s, "A5"}, {s, "A6"}})
	if err != nil {
		t.Fatal(err)
	}
	after := now()
	if n := got[0].(float64); n < before-1e-6 || n > after+1e-6 {
		t.Errorf("NOW() is %v, want %v to %v", n, before, after)
	}
	if math.Floor(before) != math.Floor(after) {
		t.Skip("the day has changed")
	}
	if got[1] != math.Floor(before) {
		t.Errorf("TODAY() is %v, want %v", got[1], math.Floor(before))
	}
	if n := got[2].(float64); n < 0 || n >= 1 {
		t.Errorf("NOW()-TODAY() is %v", n)
	}
	if int(before*24)%24 == int(after*24)%24 && got[3] != float64(int(before*24)%24) {
		t.Errorf("HOUR(NOW()) is %v, want %v", got[3], int(before*24)%24)
	}
	if got[4] != float64(time.Now().Year()) {
		t.Errorf("YEAR(TODAY()) is %v", got[4])
	}
	if got[5] != true {
		t.Errorf("INT(NOW())=TODAY() is %v", got[5])
	}
}
