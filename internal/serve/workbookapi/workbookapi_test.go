// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package workbookapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/protocol/fairness"
	"github.com/watchkeeper/watchkeeper/internal/protocol/wire"
	"github.com/watchkeeper/watchkeeper/internal/serve/sheet"
)

func post(contentType string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	(&Handler{NewQueue(nil)}).ServeHTTP(w, r)
	return w
}

const book = `{"tabs":[{"name":"deployments","resource":{"group":"apps","version":"v1","resource":"deployments"},"kind":"Deployment","namespace":"shop","selector":"","columns":["spec.replicas"],` +
	`"rows":[{"namespace":"shop","name":"web","uid":"u1","values":[2]}],"cells":[{"cell":"D2","formula":"=C2*2"},{"cell":"D3","formula":"=XLOOKUP(1,C2,C2)"}]}]`

func TestConversion(t *testing.T) {
	file := post("application/json; charset=utf-8", []byte(book+"}"))
	if file.Code != 200 || file.Header().Get("Content-Type") != wire.XLSXType || file.Header().Get("Content-Disposition") != `attachment; filename="workbook.xlsx"` {
		t.Fatalf("%d %v %s", file.Code, file.Header(), file.Body)
	}
	back := post(wire.XLSXType, file.Body.Bytes())
	want := book + `,"problems":[{"tab":"deployments","cell":"D3","message":"the function XLOOKUP is not supported"}]}` + "\n"
	if back.Code != 200 || back.Body.String() != want {
		t.Fatalf("%d %s\nwant %s", back.Code, back.Body, want)
	}
	// The answer can be sent as it is.
	if again := post("application/json", back.Body.Bytes()); again.Code != 200 {
		t.Errorf("%d %s", again.Code, again.Body)
	}
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		method, contentType, query, body string
		code                             int
		message                          string
	}{
		"GET":           {"GET", "", "", "", 405, "does not allow"},
		"form":          {"POST", "application/x-www-form-urlencoded", "", "a=b", 415, "has to be application/json"},
		"no type":       {"POST", "", "", "{}", 415, "has to be application/json"},
		"parameter":     {"POST", "application/json", "?x=1", "{}", 400, `there is no parameter "x"`},
		"empty":         {"POST", "application/json", "", "", 400, "cannot be read"},
		"no tabs":       {"POST", "application/json", "", "{}", 400, "it has 0 tabs"},
		"two":           {"POST", "application/json", "", book + "}{}", 400, "more after the workbook"},
		"unknown":       {"POST", "application/json", "", `{"tab":[]}`, 400, "unknown field"},
		"bad name":      {"POST", "application/json", "", strings.Replace(book, `"deployments","res`, `"a/b","res`, 1) + "}", 400, `the name of the tab "a/b"`},
		"bad cell":      {"POST", "application/json", "", strings.Replace(book, "D3", "A1", 1) + "}", 400, "the cell A1 has the head"},
		"bad value":     {"POST", "application/json", "", strings.Replace(book, `"formula":"=C2*2"`, `"value":{}`, 1) + "}", 400, "the value of D2"},
		"no xlsx":       {"POST", wire.XLSXType, "", "namespace,name\n", 400, "it is no .xlsx file"},
		"JSON too long": {"POST", "application/json", "", `"` + strings.Repeat("x", maxBody) + `"`, 413, "the limit is 32 MiB"},
		"xlsx too long": {"POST", wire.XLSXType, "", strings.Repeat("x", maxBody+1), 413, "the limit is 32 MiB"},
	} {
		for _, length := range []bool{true, false} {
			r := httptest.NewRequest(test.method, Path+test.query, strings.NewReader(test.body))
			r.Header.Set("Content-Type", test.contentType)
			if !length {
				r.ContentLength = -1
			}
			w := httptest.NewRecorder()
			(&Handler{NewQueue(nil)}).ServeHTTP(w, r)
			var s struct {
				Kind, Message string
				Code          int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != test.code || s.Code != test.code || s.Kind != "Status" || !strings.Contains(s.Message, test.message) {
				t.Errorf("%s: %d %.300s %v, want %d %q", name, w.Code, w.Body, err, test.code, test.message)
			}
		}
	}
}

// TestTimeOfConversion: a workbook that takes long to convert ends before the next user has waited
// in vain.
func TestTimeOfConversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(nil)
		hog := func() {
			b, release, err := q.Acquire(fairness.WithUser(t.Context(), fairness.User{Name: "hog"}))
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			for err == nil {
				time.Sleep(time.Second)
				err = b.TakeJSON(nil)
			}
			if !errors.Is(err, sheet.ErrInvalid) || !strings.Contains(err.Error(), "it takes more than 30s to convert") {
				t.Error(err)
			}
		}
		var hogs sync.WaitGroup
		for range 2 {
			hogs.Go(hog)
			synctest.Wait()
		}
		_, release, err := q.Acquire(fairness.WithUser(t.Context(), fairness.User{Name: "other"}))
		if err != nil {
			t.Fatalf("the other user: %v", err)
		}
		release()
		hogs.Wait()
	})
}
