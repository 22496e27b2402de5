// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package thirdparty says what is in a program besides our own code: Go modules, Go's
// standard library, and the npm packages in the page. It collects their licences, and writes
// SPDX documents. The same program and sources give the same bytes.
package thirdparty

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ours is the beginning of the paths of our own modules, which are under the licence of the
// program.
const ours = "github.com/watchkeeper/watchkeeper"

// Ours is whether a module is one of ours.
func Ours(module string) bool { return module == ours || strings.HasPrefix(module, ours+"/") }

// A License is a file with a licence, or with what a licence demands to be passed on.
type License struct {
	Of   string // such as "golang.org/x/sys v0.1.0", "npm:preact 11.2.0" or "std go1.26.0"
	File string // such as "LICENSE" or "internal/snapref/LICENSE"
	Text string
}

// names are those of files with licences, notices and grants of patents.
var names = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense|third.?party.?(licen[cs]es|notices))([.-].*)?$`)

// sources are the endings of files that are code and not licences.
var sources = regexp.MustCompile(`\.(go|sh|py|ya?ml|json|tmpl|tpl)$`)

// licensesIn returns the licences in the folder sub of a module.
func licensesIn(of, dir, sub string) ([]License, error) {
	entries, err := os.ReadDir(filepath.Join(dir, sub))
	if err != nil {
		return nil, fmt.Errorf("licences of %s: %w", of, err)
	}
	var licenses []License
	for _, e := range entries {
		if !e.Type().IsRegular() || !names.MatchString(e.Name()) || sources.MatchString(e.Name()) {
			continue
		}
		file := filepath.ToSlash(filepath.Join(sub, e.Name()))
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("licences of %s: %w", of, err)
		}
		licenses = append(licenses, License{of, file, normalize(string(text))})
	}
	return licenses, nil
}

// normalize removes what differs between copies of one text: the ends of lines.
func normalize(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight(line, " \t\r\n"))
		out.WriteByte('\n')
	}
	return strings.Trim(out.String(), "\n") + "\n"
}

// GoLicenses returns the licences of the code that go build compiles into a program for a
// platform: of the modules, of parts of them with licences of their own, and of Go. root is
// the folder of the repository.
func GoLicenses(root, system, architecture, program string) ([]License, error) {
	cmd := exec.Command("go", "list", "-deps", "-tags=pebblegozstd", "-json=Dir,Standard,Module", program)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, stderr.Bytes())
	}
	folders := map[string]map[string]bool{} // by folder of a module: of packages, up to the module's
	modules := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct{ Path, Version, Dir string }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		if p.Standard || p.Module == nil || Ours(p.Module.Path) {
			continue
		}
		dir := p.Module.Dir
		modules[dir] = p.Module.Path + " " + p.Module.Version
		if folders[dir] == nil {
			folders[dir] = map[string]bool{}
		}
		for sub, err := filepath.Rel(dir, p.Dir); ; sub = filepath.Dir(sub) {
			if err != nil {
				return nil, err
			}
			folders[dir][sub] = true
			if sub == "." {
				break
			}
		}
	}
	licenses, err := standardLicenses()
	if err != nil {
		return nil, err
	}
	for dir, subs := range folders {
		for sub := range subs {
			found, err := licensesIn(modules[dir], dir, sub)
			if err != nil {
				return nil, err
			}
			licenses = append(licenses, found...)
		}
	}
	return licenses, nil
}

// standardLicenses returns those of Go, whose standard library is in every program.
func standardLicenses() ([]License, error) {
	out, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return licensesIn("std "+version, root, "")
}

// Kind returns the SPDX identifier of a licence by its text, or "" if it is none that a
// released program may have: others need a decision.
func Kind(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, k := range []struct{ kind, phrase string }{
		{"Apache-2.0", "Apache License Version 2.0"},
		{"Apache-2.0", "Licensed under the Apache License, Version 2.0"},
		{"MPL-2.0", "Mozilla Public License Version 2.0"},
		{"MPL-2.0", "Mozilla Public License, version 2.0"},
		{"MIT", "Permission is hereby granted, free of charge"},
		{"ISC", "Permission to use, copy, modify, and/or distribute this software"},
		{"ISC", "Permission to use, copy, modify, and distribute this software"},
		{"BSD-3-Clause", "Redistribution and use in source and binary forms"},
		{"Unlicense", "This is free and unencumbered software released into the public domain"},
	} {
		if strings.Contains(text, k.phrase) && !strings.Contains(text, "GNU GENERAL PUBLIC LICENSE") {
			return k.kind
		}
	}
	return ""
}

const (
	rule  = "================================================================================"
	intro = "This program has code of others, under the following licences. Above each text are the\nmodules of Go (\"std\" is Go's standard library) and the packages of npm (\"npm:\") that it is\nof, at their versions, and the file it is from.\n"
)

// Format returns a text with all licences, each once.
func Format(licenses []License) string {
	of := map[string][]string{}
	for _, l := range licenses {
		of[l.Text] = append(of[l.Text], l.Of+": "+l.File)
	}
	var texts []string
	for text, heads := range of {
		slices.Sort(heads)
		of[text] = slices.Compact(heads)
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int { return strings.Compare(of[a][0], of[b][0]) })
	var out strings.Builder
	out.WriteString(intro)
	for _, text := range texts {
		out.WriteString("\n" + rule + "\n")
		out.WriteString(strings.Join(of[text], "\n"))
		out.WriteString("\n\n" + text)
	}
	return out.String()
}

// Parse returns the licences of a text that Format has made.
func Parse(text string) ([]License, error) {
	parts := strings.Split(text, "\n"+rule+"\n")
	if parts[0] != intro {
		return nil, errors.New("this is no list of licences")
	}
	var licenses []License
	for _, part := range parts[1:] {
		heads, text, _ := strings.Cut(part, "\n\n")
		if strings.TrimSpace(text) == "" {
			return nil, fmt.Errorf("no text below %q", heads)
		}
		for _, head := range strings.Split(heads, "\n") {
			of, file, ok := strings.Cut(head, ": ")
			if !ok {
				return nil, fmt.Errorf("%q is not MODULE VERSION: FILE", head)
			}
			licenses = append(licenses, License{of, file, strings.TrimRight(text, "\n") + "\n"})
		}
	}
	return licenses, nil
}
