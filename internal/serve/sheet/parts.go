// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The parts of an .xlsx file are read here, and not by excelize, so that it is known before
// an allocation what a file takes, and so that reading ends with its caller. excelize adds
// the cells that are missing in a row, and visits the cells of a row for each of them.

const (
	maxParts = 10_000
	// maxRun bounds a tag with its attributes, and the text of an element, in bytes.
	maxRun    = 1 << 20
	maxNested = 100 // of elements in each other
)

var errLong = fmt.Errorf("a tag or a text has more than %d bytes", maxRun)

// A runReader ends after maxRun bytes. The decoder keeps a tag or a text until it has its end.
type runReader struct {
	r    io.Reader
	left int
}

func (r *runReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errLong
	}
	n, err := r.r.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// parts are the parts of a file, by their names in lower case (ECMA-376 part 2).
type parts struct {
	*Budget
	byName map[string]*zip.File
	shared []string // the texts that cells refer to
}

func openParts(data []byte, b *Budget) (*parts, error) {
	if len(data) > MaxFile {
		return nil, invalid("it has more than %d MiB", MaxFile>>20)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, invalid("it is no .xlsx file")
	}
	p := &parts{b, map[string]*zip.File{}, nil}
	left := uint64(maxUnzipped)
	for _, part := range z.File {
		name := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(part.Name, `\`, "/"), "/"))
		switch {
		case part.UncompressedSize64 > left:
			return nil, invalid("its parts have more than %d MiB", maxUnzipped>>20)
		case p.byName[name] != nil || len(p.byName) == maxParts:
			return nil, invalid("it has the part %q twice, or more than %d parts", name, maxParts)
		}
		left -= part.UncompressedSize64
		p.byName[name] = part
	}
	return p, nil
}

// An element is the start of an element.
type element struct{ xml.StartElement }

// attr returns an attribute, whatever its namespace.
func (e element) attr(name string) string {
	i := slices.IndexFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == name })
	if i < 0 {
		return ""
	}
	return e.Attr[i].Value
}

// walk reads a part. It calls start for the start of each element, and end for its end, with
// the text since the call before.
func (p *parts) walk(name string, start func(name string, e element) error, end func(name, text string) error) error {
	part := p.byName[strings.ToLower(name)]
	if part == nil {
		return invalid("it has no part %s", name)
	}
	in, err := part.Open()
	if err != nil {
		return invalid("%s: %v", name, err)
	}
	defer in.Close() //nolint:errcheck // only read
	run := &runReader{r: in}
	decoder := xml.NewDecoder(run)
	decoder.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errors.New("it is not in UTF-8") }
	var text []byte
	depth := 0
	for {
		run.left = maxRun
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return invalid("%s: %v", name, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxNested {
				return invalid("%s: its elements are too deep", name)
			}
			text = text[:0]
			err = start(t.Name.Local, element{t})
		case xml.EndElement:
			depth--
			err = end(t.Name.Local, string(text))
			text = text[:0]
		case xml.CharData:
			if len(text)+len(t) > maxRun {
				return invalid("%s: %v", name, errLong)
			}
			text = append(text, t...)
		}
		if err == nil {
			err = p.take(0)
		}
		if err != nil {
			return err
		}
	}
}

// A relation is what a part refers to: the last element of its type, and the name of the part.
type relation struct{ kind, part string }

// relations returns the relations of a part by their ids; those of the file are of "".
func (p *parts) relations(of string) (map[string]relation, error) {
	dir, file := path.Split(of)
	all := map[string]relation{}
	err := p.walk(dir+"_rels/"+file+".rels", func(name string, e element) error {
		if name != "Relationship" {
			return nil
		}
		target := e.attr("Target")
		if !strings.HasPrefix(target, "/") {
			target = path.Join(dir, target)
		}
		all[e.attr("Id")] = relation{path.Base(e.attr("Type")), strings.TrimPrefix(target, "/")}
		return p.take(costObject + len(target))
	}, func(string, string) error { return nil })
	return all, err
}

// find returns the part of a kind; "" if there is none.
func find(relations map[string]relation, kind string) string {
	for _, r := range relations {
		if r.kind == kind {
			return r.part
		}
	}
	return ""
}

// A worksheet is its name and its part.
type worksheet struct{ name, part string }

// open finds the worksheets, and the cells that defined names refer to, and reads the texts
// that cells share.
func (p *parts) open() (sheets []worksheet, defined map[string]string, err error) {
	relations, err := p.relations("")
	if err != nil {
		return nil, nil, err
	}
	book := find(relations, "officeDocument")
	if relations, err = p.relations(book); err != nil {
		return nil, nil, err
	}
	defined = map[string]string{}
	current := ""
	err = p.walk(book, func(name string, e element) error {
		switch name {
		case "sheet":
			if r := relations[e.attr("id")]; r.kind == "worksheet" {
				sheets = append(sheets, worksheet{e.attr("name"), r.part})
			}
		case "definedName":
			current = e.attr("name")
		}
		return p.take(costObject)
	}, func(name, text string) error {
		if name == "definedName" {
			defined[current] = text
		}
		return p.take(2 * len(text))
	})
	if err == nil && len(sheets) > maxTabs+1 {
		err = invalid("it has %d worksheets: at most %d are possible", len(sheets), maxTabs)
	}
	if part := find(relations, "sharedStrings"); err == nil && part != "" {
		err = p.readShared(part)
	}
	return sheets, defined, err
}

func (p *parts) readShared(part string) error {
	var text []byte
	phonetic := false
	return p.walk(part, func(name string, _ element) error {
		switch name {
		case "si":
			text = text[:0]
		case "rPh":
			phonetic = true
		}
		return nil
	}, func(name, run string) error {
		switch {
		case name == "rPh":
			phonetic = false
		case name == "t" && !phonetic:
			if len(text)+len(run) > maxRun {
				return invalid("%s: %v", part, errLong)
			}
			text = append(text, run...)
		case name == "si":
			p.shared = append(p.shared, unescape(string(text)))
			return p.take(2*16 + len(text))
		}
		return nil
	})
}

// escaped matches a character that XML does not have, as .xlsx files write it.
var escaped = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

func unescape(text string) string {
	return escaped.ReplaceAllStringFunc(text, func(code string) string {
		n, _ := strconv.ParseUint(code[2:6], 16, 16)
		return string(rune(n))
	})
}
