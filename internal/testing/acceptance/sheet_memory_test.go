// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// largeWorkbook returns a workbook as JSON with 100,000 objects of ten short columns.
func largeWorkbook() []byte {
	var b bytes.Buffer
	b.WriteString(`{"tabs":[{"name":"pods","resource":{"version":"v1","resource":"pods"},"kind":"Pod","namespace":"","selector":"","columns":["spec.a"`)
	for i := range 9 {
		fmt.Fprintf(&b, `,"spec.b%d"`, i)
	}
	b.WriteString(`],"cells":[],"rows":[`)
	for i := range 100_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"namespace":"shop","name":"web-%d","uid":"0b2bd5a2-3ed9-4d8c-a6a8-%012d","values":[%d,"node-%d",true,"Running",null,2,"a","10.0.0.1","worker",5]}`, i, i, i, i%100)
	}
	b.WriteString("]}]}")
	return b.Bytes()
}

// unpacked returns an .xlsx file with another part.
func unpacked(t *testing.T, file []byte, name, text string) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, part := range z.File {
		to, err := w.Create(part.Name)
		if err == nil && part.Name == name {
			_, err = io.WriteString(to, text)
		} else if err == nil {
			var from io.ReadCloser
			if from, err = part.Open(); err == nil {
				_, err = io.Copy(to, from)
				from.Close()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestWorkbookMemory: whatever is sent to be converted, also YAML, by several at a time, a
// gateway under the chart's limits stays below its limit of memory, and answers. A large workbook is
// converted, both ways.
func TestWorkbookMemory(t *testing.T) {
	clustertest.SkipShort(t) // in no stage: a conversion may take half a minute, and other tests take the processors
	cmd := exec.Command(cluster.Program(), "open", "../../../demo/incident.wkr", "--port", "0")
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=966367641") // as in deploy/chart
	g, err := cluster.Run(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Kill()
	peak := func() int {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		kB, err := strconv.Atoi(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(text))[1])
		if err != nil {
			t.Fatal(err)
		}
		return kB >> 10
	}
	const yamlType = "application/yaml"
	post := func(ctx context.Context, kind string, body []byte) (code int, answer []byte) {
		path := "/watchkeeper/v1/workbook"
		if kind == yamlType {
			path = "/watchkeeper/v1/yaml"
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return 0, nil
		}
		defer resp.Body.Close()
		answer, err = io.ReadAll(resp.Body)
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		return resp.StatusCode, answer
	}
	t.Logf("at the start: %d MiB", peak())

	code, file := post(t.Context(), "application/json", largeWorkbook())
	if code != 200 {
		t.Fatalf("%d %.300s", code, file)
	}
	t.Logf("a large workbook written: %d MiB", peak())
	if code, answer := post(t.Context(), wire.XLSXType, file); code != 200 || bytes.Count(answer, []byte(`"uid"`)) != 100_000 {
		t.Errorf("%d %.300s", code, answer)
	}
	t.Logf("and read: %d MiB", peak())

	shared := excelize.NewFile()
	defer shared.Close()
	for i := range 100_000 {
		if err := shared.SetCellStr("Sheet1", fmt.Sprint("A", i+1), strings.Repeat("x", 30_000)); err != nil {
			t.Fatal(err)
		}
	}
	repeated, err := shared.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	var far strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&far, `,{"cell":"XFD%d","value":1}`, i+1)
	}
	farCells := []byte(`{"tabs":[{"name":"a","cells":[` + far.String()[1:] + `]}]}`)
	const sheet1 = "xl/worksheets/sheet1.xml"
	_, farFile := post(t.Context(), "application/json", farCells)
	// Of what is no larger, this takes most.
	dense := []byte("a: [" + strings.Repeat("{a: },", 1500<<10/6) + "]")
	if code, answer := post(t.Context(), yamlType, dense); code != 200 {
		t.Errorf("%d %.300s", code, answer)
	}
	t.Logf("YAML read: %d MiB", peak())
	for name, test := range map[string]struct {
		kind string
		body []byte
	}{
		"cells in a far column":         {"application/json", farCells},
		"a file of such cells":          {wire.XLSXType, farFile},
		"one text in many cells":        {wire.XLSXType, repeated.Bytes()},
		"cells":                         {wire.XLSXType, unpacked(t, farFile, sheet1, `<worksheet><sheetData><row>`+strings.Repeat("<c><v>1</v></c>", 3<<20))},
		"tabs":                          {"application/json", []byte(`{"tabs":[` + strings.Repeat("{},", 1<<18) + "{}]}")},
		"values":                        {"application/json", []byte(`{"tabs":[{"name":"a","rows":[{"values":[` + strings.Repeat("1,", 15<<20) + "1]}]}]}")},
		"columns":                       {"application/json", []byte(`{"tabs":[{"name":"a","columns":[` + strings.Repeat(`"",`, 10<<20) + `""]}]}`)},
		"a workbook as large as may be": {"application/json", largeWorkbook()},
	} {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				ctx := t.Context()
				if i == 0 { // it leaves
					short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
					defer cancel()
					ctx = short
				}
				if code, answer := post(ctx, test.kind, test.body); code != 0 && code != 200 && code != 400 && code != 413 && code != 429 {
					t.Errorf("%s: %d %.300s", name, code, answer)
				}
			})
		}
		for range 2 {
			all.Go(func() {
				if code, answer := post(t.Context(), yamlType, dense); code != 200 && code != 429 {
					t.Errorf("YAML: %d %.300s", code, answer)
				}
			})
		}
		all.Wait()
		mib := peak()
		t.Logf("%s: %d MiB", name, mib)
		if mib > 800 {
			t.Fatalf("%s: the gateway took %d MiB", name, mib)
		}
	}
}
