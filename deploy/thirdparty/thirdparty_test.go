// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package thirdparty_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/deploy/thirdparty"
)

// TestGoLicenses: the program for Windows has Go's licence, those of modules that only
// Windows has, and those of parts of modules; each is known, and a text survives.
func TestGoLicenses(t *testing.T) {
	all, err := thirdparty.GoLicenses("../..", "windows", "amd64", "./cmd/watchkeeper")
	if err != nil {
		t.Fatal(err)
	}
	text := thirdparty.Format(all)
	slices.Reverse(all)
	if thirdparty.Format(all) != text {
		t.Error("the order matters")
	}
	parsed, err := thirdparty.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, l := range parsed {
		name, _, _ := strings.Cut(l.Of, " ")
		if kind := thirdparty.Kind(l.Text); kind != "" {
			found[name+": "+l.File] = kind
		}
		if thirdparty.Ours(name) {
			t.Errorf("%s is ours", l.Of)
		}
	}
	for name, kind := range map[string]string{
		"std: LICENSE": "BSD-3-Clause",
		"github.com/inconshreveable/mousetrap: LICENSE":                   "Apache-2.0",
		"k8s.io/client-go: LICENSE":                                       "Apache-2.0",
		"github.com/klauspost/compress: zstd/internal/xxhash/LICENSE.txt": "MIT",
	} {
		if found[name] != kind {
			t.Errorf("%s: %q, want %s", name, found[name], kind)
		}
	}
	if len(parsed) != len(all) {
		t.Errorf("%d licences, of %d", len(parsed), len(all))
	}
}

// page writes a lock file with packages in the page, for development, and of our own.
func page(t *testing.T, installed bool) string {
	t.Helper()
	dir := t.TempDir()
	lock := `{"packages": {
		"": {"version": "1.0.0"}, "informer": {"version": "1.0.0"},
		"node_modules/@our/informer": {"resolved": "informer", "link": true},
		"node_modules/@a/b": {"version": "2.0.0", "license": "MIT"},
		"node_modules/tool": {"version": "3.0.0", "dev": true}}}`
	if err := os.WriteFile(filepath.Join(dir, "package-lock.json"), []byte(lock), 0o600); err != nil {
		t.Fatal(err)
	}
	if installed {
		folder := filepath.Join(dir, "node_modules", "@a", "b")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "LICENSE"), []byte("Permission is hereby granted, free\r\nof charge"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPage(t *testing.T) {
	dir := page(t, true)
	packages, err := thirdparty.PagePackages(dir)
	if err != nil || len(packages) != 1 || packages[0] != (thirdparty.Package{Name: "@a/b", Version: "2.0.0", License: "MIT"}) {
		t.Errorf("%v, %v", packages, err)
	}
	licenses, err := thirdparty.PageLicenses(dir)
	if err != nil || len(licenses) != 1 || licenses[0].Of != "npm:@a/b 2.0.0" || thirdparty.Kind(licenses[0].Text) != "MIT" {
		t.Errorf("%q, %v", licenses, err)
	}
	if _, err := thirdparty.PageLicenses(page(t, false)); err == nil {
		t.Error("no error without the packages")
	}
}

// TestPageWithoutText: a package that may be used under our own licence has its text.
func TestPageWithoutText(t *testing.T) {
	dir := page(t, true)
	ui := filepath.Join(dir, "ui")
	if err := os.MkdirAll(filepath.Join(ui, "node_modules", "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(dir, "LICENSE"):          "Apache License\nVersion 2.0",
		filepath.Join(ui, "package-lock.json"): `{"packages": {"node_modules/c": {"version": "1.0.0", "license": "MIT/Apache-2.0"}}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	licenses, err := thirdparty.PageLicenses(ui)
	if err != nil || len(licenses) != 1 || licenses[0].Of != "npm:c 1.0.0" || thirdparty.Kind(licenses[0].Text) != "Apache-2.0" {
		t.Errorf("%q, %v", licenses, err)
	}
}

func TestKind(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":       "Apache-2.0",
		"Redistribution and use in source\nand binary forms": "BSD-3-Clause",
		"GNU GENERAL PUBLIC LICENSE Version 3":               "",
		"All rights reserved":                                "",
		"":                                                   "",
	} {
		if got := thirdparty.Kind(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	one := thirdparty.Format([]thirdparty.License{{Of: "m v1", File: "LICENSE", Text: "text\n"}})
	if l, err := thirdparty.Parse(one); err != nil || len(l) != 1 || l[0].Text != "text\n" {
		t.Fatalf("%q, %v", l, err)
	}
	for _, text := range []string{"", "text", strings.Replace(one, "text", "", 1), strings.Replace(one, ": ", "", 1), strings.TrimPrefix(one, "This")} {
		if _, err := thirdparty.Parse(text); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}
