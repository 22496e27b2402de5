// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"
)

// raw are values of an object, in JSON.
func raw(values ...string) (all []json.RawMessage) {
	for _, v := range values {
		all = append(all, json.RawMessage(v))
	}
	return all
}

func file(t *testing.T, w *Workbook) []byte {
	t.Helper()
	data, err := w.XLSX(budget(t))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// budget is enough for all files of tests.
func budget(t *testing.T) *Budget {
	t.Helper()
	return NewBudget(t.Context(), 1<<30)
}

// asJSON compares values as JSON, not as text.
var asJSON = cmp.Transformer("JSON", func(text json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if len(text) > 0 {
		if err := decoder.Decode(&value); err != nil {
			panic(err)
		}
	}
	return value
})

var deployments = Resource{Group: "apps", Version: "v1", Resource: "deployments"}

func example() *Workbook {
	return &Workbook{Tabs: []Tab{
		{
			Name: "deployments", Resource: deployments, Kind: "Deployment", Namespace: "shop", Selector: "app=web",
			Columns: []string{"spec.replicas", "metadata.annotations['note']", "status.readyReplicas", "spec.template.spec.containers[0].image", "spec.selector"},
			Rows: []Row{
				{"shop", "web", "u1", raw("2", `"=HYPERLINK(\"http://x\")"`, "2", `"nginx:1.27"`, `{"matchLabels":{"app":"web"}}`)},
				{"shop", "api", "u2", raw("3", "null", "null", `"007"`, "null")},
			},
			Cells: []Cell{
				{Cell: "H1", Value: json.RawMessage(`"wanted"`)},
				{Cell: "C2", Formula: "=H2*2"},
				{Cell: "H2", Value: json.RawMessage("2")},
				{Cell: "C3", Value: json.RawMessage("5")},
				{Cell: "F3", Value: json.RawMessage("null")},
				{Cell: "H3", Value: json.RawMessage("true")},
				{Cell: "C5", Formula: `=IFS(SUM(C2:C3)>4,"many",TRUE,"few")`},
			},
		},
		{Name: "notes", Columns: []string{}, Rows: []Row{}, Cells: []Cell{{Cell: "B2", Formula: "=deployments!C5"}, {Cell: "A40", Value: json.RawMessage(`"=1+1"`)}}},
	}}
}

func TestRoundTrip(t *testing.T) {
	want := example()
	got, problems, err := Read(budget(t), file(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if problems != nil {
		t.Errorf("the problems are %v", problems)
	}
}

// hostile are texts that a spreadsheet could take for something else.
var hostile = []string{
	"=1+1", "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1+1", "\r=1", "\n=1", "=", "'=1", "007", "1e5", "TRUE", "true", "#DIV/0!", "#REF!", "2024-01-01",
	"a,b;c", `"quoted"`, "line\nbreak", "crlf\r\nend", " spaces ", "_x0041_", "_x005F_x0041_", "_x000D_", "<a>&amp;</a>", "]]>", "日本語 😀", "\u202eevil", "{=1}", "=WEBSERVICE(\"http://x\")", "%0A", "http://example.com", "1/2", "１２", "＝1",
	strings.Repeat("x", 40_000), strings.Repeat("😀", 20_000), "\x01control\x1f", "\ufffe", "nul\x00",
}

// TestHostileTexts: no text of an object becomes a formula, another type or a change.
func TestHostileTexts(t *testing.T) {
	tab := Tab{Name: "configmaps", Resource: Resource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Columns: []string{"data.key", "metadata.annotations"}}
	for i, text := range hostile {
		value, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		tab.Rows = append(tab.Rows, Row{"default", fmt.Sprint("c", i), fmt.Sprint("u", i), raw(string(value), `{"a":`+string(value)+`}`)})
	}
	tab.Cells = []Cell{}
	data := file(t, &Workbook{[]Tab{tab}})
	got, _, err := Read(budget(t), data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tab, got.Tabs[0], asJSON); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	f, err := excelize.OpenReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, text := range hostile {
		for _, column := range []string{"C", "D"} {
			cell := fmt.Sprint(column, i+2)
			formula, err := f.GetCellFormula(tab.Name, cell)
			if err != nil || formula != "" {
				t.Errorf("%q is the formula %s (%v)", text, formula, err)
			}
			if kind, _ := f.GetCellType(tab.Name, cell); kind != excelize.CellTypeInlineString && kind != excelize.CellTypeSharedString {
				t.Errorf("%q has the type %v", text, kind)
			}
		}
		style, err := f.GetCellStyle(tab.Name, fmt.Sprint("C", i+2))
		if err != nil {
			t.Fatal(err)
		}
		quoted := f.Styles.CellXfs.Xf[style].QuotePrefix
		if want := strings.ContainsAny(text[:1], "=+-@\t\r"); want != (quoted != nil && *quoted) {
			t.Errorf("%q is marked as text: %v, want %v", text, !want, want)
		}
	}
	for _, xml := range partsOf(t, data) {
		if strings.Contains(xml, "<f>") || strings.Contains(xml, "<f ") || strings.Contains(xml, "<hyperlink") {
			t.Error("the file has a formula or a link")
		}
	}
}

// partsOf returns the files of an .xlsx file.
func partsOf(t *testing.T, data []byte) (all []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range z.File {
		in, err := part.Open()
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(in); err != nil {
			t.Fatal(err)
		}
		all = append(all, text.String())
	}
	return all
}

// TestRoundTripProperty: any workbook is the same after writing and reading.
func TestRoundTripProperty(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range cases(60) {
		want := randomWorkbook(r)
		got, _, err := Read(budget(t), file(t, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
}

// cases returns how many random cases a test has: a sixth of n in make test.
func cases(n int) int {
	if testing.Short() {
		return n / 6
	}
	return n
}

func randomText(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		return hostile[r.IntN(len(hostile)-6)]
	}
	return string([]rune("ab=+-@ '\"\t<é😀0_x")[r.IntN(12):])
}

func randomValue(r *rand.Rand) json.RawMessage {
	var value any
	switch r.IntN(8) {
	case 0:
		value = r.IntN(100) - 50
	case 1:
		value = r.Float64() * 1e6
	case 2:
		value = int64(9007199254740993) + r.Int64N(1000)
	case 3:
		value = r.IntN(2) == 0
	case 4:
		value = map[string]any{"a": randomText(r), "b": []any{1, nil}}
	case 5:
		value = nil
	default:
		value = randomText(r)
	}
	text, _ := json.Marshal(value)
	return text
}

func randomWorkbook(r *rand.Rand) *Workbook {
	w := &Workbook{}
	var names []string
	for range 1 + r.IntN(4) {
		name := TabName([]string{"deployments", "a/b", "Deployments", strings.Repeat("long", 20), "it's"}[r.IntN(5)], names)
		names = append(names, name)
		tab := Tab{Name: name, Columns: []string{}, Rows: []Row{}, Cells: []Cell{}}
		if r.IntN(4) > 0 {
			tab.Resource, tab.Kind, tab.Namespace, tab.Selector = deployments, "Deployment", []string{"", "shop"}[r.IntN(2)], []string{"", "a in (b,c)"}[r.IntN(2)]
			for i := range r.IntN(4) {
				tab.Columns = append(tab.Columns, []string{"spec.replicas", "metadata.labels['a/b']", `status.conditions[?(@.type=="Ready")].status`, "spec.x[*]"}[i])
			}
			for i := range r.IntN(8) {
				row := Row{Namespace: []string{"", "shop"}[r.IntN(2)], Name: fmt.Sprint("o", i), UID: fmt.Sprint(r.Uint32())}
				for range tab.Columns {
					row.Values = append(row.Values, randomValue(r))
				}
				tab.Rows = append(tab.Rows, row)
			}
			if n := len(tab.Rows); n > 1 && r.IntN(2) == 0 {
				tab.Rows[r.IntN(n-1)] = Row{}
			}
		}
		for row := 1; row < 12; row++ {
			for column := 1; column < 9; column++ {
				old, bound := tab.bound(column, row)
				if r.IntN(4) > 0 || tab.isHead(column, row) || tab.isIdentity(column, row) {
					continue
				}
				c := Cell{}
				c.Cell, _ = excelize.CoordinatesToCellName(column, row)
				switch r.IntN(4) {
				case 0:
					c.Formula = []string{"=SUM(A1:B2)", `="a"&"=b"`, "=IFS(A1>1,1,TRUE,2)", "=XLOOKUP(1,A1,B1)"}[r.IntN(4)]
				case 1:
					c.Value, _ = json.Marshal(randomText(r))
				case 2:
					c.Value, _ = json.Marshal(r.IntN(1000))
				default:
					c.Value = json.RawMessage("null")
				}
				if value, _ := c.value(); c.Formula == "" && (bound && same(old, value) || !bound && value == nil) {
					continue
				}
				tab.Cells = append(tab.Cells, c)
			}
		}
		w.Tabs = append(w.Tabs, tab)
	}
	return w
}

// rebuild returns a file with other parts.
func rebuild(t *testing.T, file []byte, change func(name, text string) string) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	for i, text := range partsOf(t, file) {
		part, err := w.Create(z.File[i].Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte(change(z.File[i].Name, text))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestBadFiles: a file that is not one is refused, and takes little memory.
func TestBadFiles(t *testing.T) {
	good := file(t, example())
	rebuild := func(change func(name, text string) string) []byte { return rebuild(t, good, change) }
	sheet := func(cells string) []byte {
		return rebuild(func(name, text string) string {
			if name == "xl/worksheets/sheet1.xml" {
				return `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>` + cells + `</sheetData></worksheet>`
			}
			return text
		})
	}
	wide := strings.Repeat(`<row><c r="XFD1"/></row>`, 1000)
	bad := map[string][]byte{
		"empty":         {},
		"text":          []byte("namespace,name\n"),
		"cut":           good[:len(good)/2],
		"zip":           rebuild(func(string, string) string { return "" }),
		"wide rows":     sheet(wide),
		"a row too far": sheet(`<row r="99999999"><c r="A99999999"/></row>`),
		"no cell":       sheet(`<row r="1"><c r="nonsense"/></row>`),
		"broken XML":    sheet(`<row r="1"><c r="A1"`),
		"no text":       sheet(`<row r="1"><c r="A1" t="s"><v>0</v></c></row>`),
		"number":        sheet(`<row r="1"><c r="A1"><v>one</v></c></row>`),
		"formula":       sheet(`<row r="1"><c r="A1"><f t="shared" si="1"/></c></row>`),
		"other row":     sheet(`<row r="1"><c r="A2"><v>1</v></c></row>`),
		"encoding":      rebuild(func(name, text string) string { return strings.Replace(text, "UTF-8", "ISO-8859-1", 1) }),
		"resource": rebuild(func(name, text string) string {
			return strings.ReplaceAll(text, `&#34;resource&#34;:&#34;deployments&#34;`, `&#34;resource&#34;:&#34;deployments/web?x=&#34;`)
		}),
		"links": rebuild(func(name, text string) string { return strings.ReplaceAll(text, "watchkeeper workbook", "something") }),
		"newer": rebuild(func(name, text string) string {
			return strings.ReplaceAll(text, "<is><t>1</t></is>", "<is><t>2</t></is>")
		}),
	}
	if !testing.Short() { // make test-all runs it
		bad["bomb"] = rebuild(func(name, text string) string { return text + strings.Repeat(" ", 40<<20) })
	}
	for name, data := range bad {
		if _, _, err := Read(budget(t), data); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	// This is read, but what excelize would need to change it is bounded.
	merged, err := Open(budget(t), rebuild(func(name, text string) string {
		return strings.Replace(text, "</worksheet>", `<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells></worksheet>`, 1)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := merged.Refresh(nil, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("merged: the error is %v", err)
	}
	// Any bytes may be changed: the answer is a workbook or an error.
	r := rand.New(rand.NewPCG(1, 2))
	for range cases(100) {
		at := r.IntN(1 << 16)
		data := rebuild(func(name, text string) string {
			if i := at % (len(text) + 1); strings.HasPrefix(name, "xl/") && i < len(text) && r.IntN(3) == 0 {
				return text[:i] + string(rune('!'+r.IntN(90))) + text[i+1:]
			}
			return text
		})
		if _, _, err := Read(budget(t), data); err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestTabName(t *testing.T) {
	for wanted, want := range map[string]string{
		"pods": "pods (2)", "a/b": "a-b", "it's": "it-s", "": "(2)", strings.Repeat("x", 40): strings.Repeat("x", 31), "watchkeeper": "watchkeeper (2)", "PODS": "PODS (2)",
	} {
		if got := strings.TrimSpace(TabName(wanted, []string{"pods"})); got != want {
			t.Errorf("the name of %q is %q, want %q", wanted, got, want)
		}
	}
}

// TestPlaces: no part of the place of an object in a workbook leads a request to another path, or
// ends the path.
func TestPlaces(t *testing.T) {
	for _, part := range []string{"a?x=", "a#x", "a/b", "..", ".", "a%2fb", "a b", "A", "a\n", "a;b", "a&b", "ä"} {
		for name, change := range map[string]func(*Tab){
			"group":     func(t *Tab) { t.Resource.Group = part },
			"version":   func(t *Tab) { t.Resource.Version = part },
			"resource":  func(t *Tab) { t.Resource.Resource = part },
			"namespace": func(t *Tab) { t.Namespace = part },
			"row":       func(t *Tab) { t.Rows[0].Namespace = part },
			"name": func(t *Tab) { // these are escaped
				if t.Rows[0].Name = part; !strings.ContainsAny(part, "/%") && strings.Trim(part, ".") != "" {
					t.Rows[0].Name = ".."
				}
			},
		} {
			tab := Tab{Name: "web", Resource: deployments, Kind: "Deployment", Columns: []string{"spec.replicas"}, Rows: []Row{{"shop", "web", "u", []json.RawMessage{json.RawMessage("1")}}}}
			change(&tab)
			if err := (&Workbook{Tabs: []Tab{tab}}).Check(); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s %q: %v", name, part, err)
			}
		}
	}
}
