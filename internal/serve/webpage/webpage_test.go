// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package webpage_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/watchkeeper/watchkeeper/internal/serve/webpage"
)

// built is an example of a built page.
var built = fstest.MapFS{
	".gitkeep":               {},
	"index.html":             {Data: []byte("<html>page")},
	"index.html.gz":          {Data: []byte("page, gzip")},
	"index.html.br":          {Data: []byte("page, brotli")},
	"icon.svg":               {Data: []byte("<svg>")},
	"assets/app-a1b2.js":     {Data: []byte("script")},
	"assets/app-a1b2.js.gz":  {Data: []byte("script, gzip")},
	"assets/app-a1b2.css":    {Data: []byte("style")},
	"assets/app-a1b2.css.br": {Data: []byte("style, brotli")},
}

func get(t *testing.T, files fstest.MapFS, method, path string, headers ...string) *http.Response {
	t.Helper()
	h, err := webpage.New(files, webpage.Config{API: "../", Extension: "../watchkeeper/v1/"})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, "/", nil)
	r.URL.Path = path // as http.StripPrefix leaves it
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	var text strings.Builder
	if err := res.Write(&text); err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(text.String(), "\r\n\r\n")
	return after
}

func TestFiles(t *testing.T) {
	const forever, revalidate = "public, max-age=31536000, immutable", "no-cache"
	for _, tc := range []struct {
		path, accept string
		body         string // "" for 404
		contentType  string
		cache        string
		encoding     string
		vary         string
	}{
		{"", "", "<html>page", "text/html; charset=utf-8", revalidate, "", "Accept-Encoding"},
		{"index.html", "gzip, deflate, br, zstd", "page, brotli", "text/html; charset=utf-8", revalidate, "br", "Accept-Encoding"},
		{"index.html", "gzip", "page, gzip", "text/html; charset=utf-8", revalidate, "gzip", "Accept-Encoding"},
		{"index.html", "br;q=0, GZIP;q=0.5", "page, gzip", "text/html; charset=utf-8", revalidate, "gzip", "Accept-Encoding"},
		{"index.html", "br;q=nothing", "<html>page", "text/html; charset=utf-8", revalidate, "", "Accept-Encoding"},
		{"icon.svg", "br", "<svg>", "image/svg+xml", revalidate, "", ""},
		{"assets/app-a1b2.js", "br", "script", "text/javascript; charset=utf-8", forever, "", "Accept-Encoding"},
		{"assets/app-a1b2.js", "br, gzip", "script, gzip", "text/javascript; charset=utf-8", forever, "gzip", "Accept-Encoding"},
		{"assets/app-a1b2.css", "br, gzip", "style, brotli", "text/css; charset=utf-8", forever, "br", "Accept-Encoding"},
		{"config.json", "br", `{"api":"../","extension":"../watchkeeper/v1/"}` + "\n", "application/json", revalidate, "", ""},
		{path: "index.html.gz"},
		{path: "assets/"},
		{path: "assets/app-0000.js"},
		{path: "pods/default/a"},
		{path: ".gitkeep"},
		{path: "../index.html"},
	} {
		t.Run(tc.path+" "+tc.accept, func(t *testing.T) {
			res := get(t, built, "GET", tc.path, "Accept-Encoding", tc.accept)
			if res.Header.Get("Content-Security-Policy") == "" || res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("headers %v", res.Header)
			}
			if tc.body == "" {
				if res.StatusCode != http.StatusNotFound {
					t.Errorf("%s, want 404", res.Status)
				}
				return
			}
			if got := body(t, res); res.StatusCode != http.StatusOK || got != tc.body {
				t.Errorf("%s %q, want %q", res.Status, got, tc.body)
			}
			for name, want := range map[string]string{
				"Content-Type": tc.contentType, "Cache-Control": tc.cache, "Content-Encoding": tc.encoding, "Vary": tc.vary,
			} {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if res.ContentLength != int64(len(tc.body)) {
				t.Errorf("length %d", res.ContentLength)
			}
		})
	}
}

func TestUnchanged(t *testing.T) {
	tags := map[string]bool{}
	for _, accept := range []string{"", "gzip", "br"} {
		tag := get(t, built, "GET", "", "Accept-Encoding", accept).Header.Get("ETag")
		if tags[tag] {
			t.Errorf("%s has the tag of another encoding, %s", accept, tag)
		}
		tags[tag] = true
		for _, asked := range []string{tag, `"x", W/` + tag, "*"} {
			res := get(t, built, "GET", "", "Accept-Encoding", accept, "If-None-Match", asked)
			if res.StatusCode != http.StatusNotModified || body(t, res) != "" || res.Header.Get("ETag") != tag {
				t.Errorf("%s: %s", asked, res.Status)
			}
		}
		if res := get(t, built, "GET", "", "Accept-Encoding", accept, "If-None-Match", `"x"`); res.StatusCode != http.StatusOK {
			t.Errorf("another tag: %s", res.Status)
		}
	}
}

func TestHead(t *testing.T) {
	res := get(t, built, "HEAD", "assets/app-a1b2.js", "Accept-Encoding", "gzip")
	if res.StatusCode != http.StatusOK || res.ContentLength != int64(len("script, gzip")) || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	res.ContentLength = 0 // HEAD has no body
	if got := body(t, res); got != "" {
		t.Errorf("body %q", got)
	}
}

// TestUnbuilt checks a binary that was built without the page.
func TestUnbuilt(t *testing.T) {
	files := fstest.MapFS{".gitkeep": {}}
	text := body(t, get(t, files, "GET", ""))
	if !strings.Contains(text, "make build") || !strings.Contains(text, `href="../api/v1/pods"`) || strings.Contains(text, "style=") {
		t.Errorf("page: %s", text)
	}
	if res := get(t, files, "GET", "style.css"); res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("style sheet: %s %v", res.Status, res.Header)
	}
}
