// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package webpage

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// Config is the content of config.json. The paths are relative to the page and
// end in a slash.
type Config struct {
	// API is the path of the Kubernetes API.
	API string `json:"api"`
	// Extension is the path of Watchkeeper's own API.
	Extension string `json:"extension"`
}

const policy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types watchkeeper"

// wasmPolicy also allows WebAssembly. Only the worker that evaluates the formulas of the
// spreadsheet has it: a worker has the policy of its script.
var wasmPolicy = strings.Replace(policy, "script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'", 1)

// wasmWorker is how the name of that script begins.
const wasmWorker = assets + "later-formulas-worker-"

// unbuilt is served if the page was not built.
//
//go:embed unbuilt
var unbuilt embed.FS

const (
	index  = "index.html"
	assets = "assets/" // files below it never change
)

// encodings are those of precompressed files, the best first, with the suffixes
// of their names.
var encodings = []struct{ name, extension string }{{"br", ".br"}, {"gzip", ".gz"}}

// A variant is a file in one encoding.
type variant struct {
	encoding string // "" for the uncompressed file
	body     []byte
	tag      string
}

// A file is served at one path.
type file struct {
	contentType string
	immutable   bool
	variants    []variant // the best first, the uncompressed file last
}

type handler map[string]*file

// New returns a handler for the files of a page. Without an index.html it serves
// a page that explains how to build it. The handler expects paths relative to the
// page.
func New(files fs.FS, config Config) (http.Handler, error) {
	h := handler{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || isCompressed(name) || strings.HasPrefix(path.Base(name), ".") {
			return err
		}
		return h.add(files, name)
	})
	if err != nil {
		return nil, err
	}
	if h[index] == nil {
		if err := h.addUnbuilt(config); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	h["config.json"] = &file{contentType: "application/json", variants: []variant{newVariant("", append(text, '\n'))}}
	h[""] = h[index]
	return h, nil
}

func isCompressed(name string) bool {
	for _, e := range encodings {
		if strings.HasSuffix(name, e.extension) {
			return true
		}
	}
	return false
}

func (h handler) add(files fs.FS, name string) error {
	f := &file{contentType: contentType(name), immutable: strings.HasPrefix(name, assets)}
	for _, e := range encodings {
		body, err := fs.ReadFile(files, name+e.extension)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		f.variants = append(f.variants, newVariant(e.name, body))
	}
	body, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	f.variants = append(f.variants, newVariant("", body))
	h[name] = f
	return nil
}

func (h handler) addUnbuilt(config Config) error {
	files, err := fs.Sub(unbuilt, "unbuilt")
	if err != nil {
		return err
	}
	if err := h.add(files, "style.css"); err != nil {
		return err
	}
	t, err := template.ParseFS(files, index)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, config); err != nil {
		return err
	}
	h[index] = &file{contentType: contentType(index), variants: []variant{newVariant("", text.Bytes())}}
	return nil
}

// contentType does not use the types of the machine for these, since they differ.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json":
		return "application/json"
	case ".woff2":
		return "font/woff2"
	case ".wasm":
		return "application/wasm"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

func newVariant(encoding string, body []byte) variant {
	sum := sha256.Sum256(body)
	return variant{encoding, body, fmt.Sprintf("%q", fmt.Sprintf("%x", sum[:12]))}
}

// ServeHTTP answers GET and HEAD.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Content-Security-Policy", policy)
	header.Set("Cache-Control", "no-cache")
	name := strings.TrimPrefix(r.URL.Path, "/")
	f := h[name]
	if strings.HasPrefix(name, wasmWorker) {
		header.Set("Content-Security-Policy", wasmPolicy)
	}
	if f == nil {
		http.NotFound(w, r)
		return
	}
	if f.immutable {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if len(f.variants) > 1 {
		header.Set("Vary", "Accept-Encoding")
	}
	chosen := f.choose(strings.Join(r.Header["Accept-Encoding"], ","))
	header.Set("ETag", chosen.tag)
	if matches(strings.Join(r.Header["If-None-Match"], ","), chosen.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", f.contentType)
	if chosen.encoding != "" {
		header.Set("Content-Encoding", chosen.encoding)
	}
	header.Set("Content-Length", strconv.Itoa(len(chosen.body)))
	if r.Method != http.MethodHead {
		w.Write(chosen.body) //nolint:errcheck // the client has disconnected
	}
}

// choose returns the best variant that an Accept-Encoding allows, regardless of
// weights above zero.
func (f *file) choose(accept string) variant {
	allowed := map[string]bool{}
	for clause := range strings.SplitSeq(accept, ",") {
		name, weight, _ := strings.Cut(clause, ";")
		value, hasWeight := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		q, err := strconv.ParseFloat(value, 64)
		allowed[strings.ToLower(strings.TrimSpace(name))] = !hasWeight || err == nil && q > 0
	}
	for _, v := range f.variants {
		if allowed[v.encoding] {
			return v
		}
	}
	return f.variants[len(f.variants)-1]
}

// matches reports whether an If-None-Match contains a tag.
func matches(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}
