// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var testNames = []string{"127.0.0.1", "::1", "gateway.example.com", "localhost"}

// newPair makes a pair for testNames as EnsureDirectory does, valid for maxAge.
func newPair(t testing.TB, maxAge time.Duration) map[string][]byte {
	t.Helper()
	opts := pairOptions(testNames)
	opts.MaxAge = maxAge
	files, err := makePair(opts)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func writeFiles(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// readFiles returns the files of dir except the lock.
func readFiles(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if entry.Name() == lockFile {
			continue
		}
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func equalFiles(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

// checkPair fails if a client that trusts ca.crt would not accept the pair for names.
// It returns the server's certificate.
func checkPair(t testing.TB, dir string, names []string) *x509.Certificate {
	t.Helper()
	files := readFiles(t, dir)
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, []string{caFile, certFile, keyFile}) {
		t.Fatalf("files %q", got)
	}
	pair, err := tls.X509KeyPair(files[certFile], files[keyFile])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(files[caFile]) {
		t.Fatal("no certificate in ca.crt")
	}
	for _, name := range names {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return pair.Leaf
}

// ensure calls EnsureDirectory and returns its log.
func ensure(t testing.TB, dir string, names []string) string {
	t.Helper()
	var out bytes.Buffer
	crt, key, err := EnsureDirectory(dir, names, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if crt != filepath.Join(dir, "tls.crt") || key != filepath.Join(dir, "tls.key") {
		t.Fatalf("%q %q", crt, key)
	}
	return out.String()
}

func TestSelfSignedIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b[1]") // characters that a pattern would interpret
	if log := ensure(t, dir, testNames); !strings.Contains(log, `reason="there is no certificate"`) || !strings.Contains(log, filepath.Join(dir, "ca.crt")) {
		t.Errorf("log %q", log)
	}
	leaf := checkPair(t, dir, testNames)
	if got := len(leaf.DNSNames) + len(leaf.IPAddresses); got != len(testNames) {
		t.Errorf("names %q, %v", leaf.DNSNames, leaf.IPAddresses)
	}
	if leaf.VerifyHostname("other.example.com") == nil {
		t.Error("valid for a name that was not given")
	}
	for name, want := range map[string]fs.FileMode{"": 0o700, keyFile: 0o600, caFile: 0o644, certFile: 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %q: %o", name, got)
		}
	}
	before := readFiles(t, dir)
	if log := ensure(t, dir, testNames[:2]); log != "" || !equalFiles(before, readFiles(t, dir)) {
		t.Errorf("made again: %q", log)
	}
}

func TestSelfSignedNames(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	base := []string{"localhost", "127.0.0.1", "::1"}
	if name, ok := certName(host); ok {
		base = append(base, name)
	}
	for _, c := range []struct {
		address string
		sans    []string
		also    []string // nil: an error
	}{
		{"", nil, []string{}},
		{"0.0.0.0", nil, []string{}},
		{"::", nil, []string{}},
		{"127.0.0.1", nil, []string{}},
		{"gateway", nil, []string{}}, // not an address
		{"192.0.2.7", nil, []string{"192.0.2.7"}},
		{"[2001:db8:0::7]", nil, []string{"2001:db8::7"}},
		{"fe80::1%eth0", nil, []string{"fe80::1"}},
		{"", []string{"Gateway.Example.com.", "*.example.com", "192.0.2.8", "2001:DB8::8", "localhost"}, []string{"gateway.example.com", "*.example.com", "192.0.2.8", "2001:db8::8"}},
		{"", []string{"https://gateway.example.com"}, nil},
		{"", []string{"gateway.example.com:8001"}, nil},
		{"", []string{""}, nil},
		{"", []string{"a.*.com"}, nil},
	} {
		names, err := Names(c.address, c.sans)
		if c.also == nil {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--tls-san %q", c.sans[0])) || !strings.Contains(err.Error(), "use one such as") {
				t.Errorf("%q: %q, %v", c.sans, names, err)
			}
			continue
		}
		want := slices.Concat(base, c.also)
		slices.Sort(want)
		if want = slices.Compact(want); err != nil || !slices.Equal(names, want) {
			t.Errorf("%q %q: %q, %v; want %q", c.address, c.sans, names, err, want)
		}
	}
}

func TestSelfSignedIsRenewedBeforeItExpires(t *testing.T) {
	if minValidity < 7*RenewInterval {
		t.Error("an operator has less than a week to see that renewals fail")
	}
	dir := t.TempDir()
	long := newPair(t, minValidity+2*time.Hour) // the library subtracts one
	writeFiles(t, dir, long)
	if log := ensure(t, dir, testNames); log != "" || !equalFiles(readFiles(t, dir), long) {
		t.Errorf("renewed too early: %q", log)
	}
	for _, maxAge := range []time.Duration{minValidity, time.Minute} { // the second has expired
		writeFiles(t, dir, newPair(t, maxAge))
		if log := ensure(t, dir, testNames); !strings.Contains(log, "valid only until") {
			t.Errorf("log %q", log)
		}
		if leaf := checkPair(t, dir, testNames); time.Until(leaf.NotAfter) < 300*24*time.Hour {
			t.Errorf("valid until %v", leaf.NotAfter)
		}
	}
}

func TestSelfSignedIsMadeForAllNames(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, testNames)
	other := []string{"localhost", "192.0.2.1", "*.test"}
	if log := ensure(t, dir, other); !strings.Contains(log, "is not for 192.0.2.1") {
		t.Errorf("log %q", log)
	}
	// The process with the first names need not make it again.
	checkPair(t, dir, slices.Concat(testNames, other[:2], []string{"a.test"}))
	for _, names := range [][]string{testNames, other} {
		if log := ensure(t, dir, names); log != "" {
			t.Errorf("made again: %q", log)
		}
	}
	var many []string
	for i := range maxNames - 1 {
		many = append(many, fmt.Sprintf("name%d.test2", i))
	}
	ensure(t, dir, many)
	if leaf := checkPair(t, dir, many); len(leaf.DNSNames) != maxNames || leaf.VerifyHostname("gateway.example.com") == nil {
		t.Errorf("%d names", len(leaf.DNSNames))
	}
}

// foreignPair is a pair of another program, with its CA.
func foreignPair(t *testing.T) map[string][]byte {
	opts := pairOptions(testNames)
	opts.Host = "foreign"
	files, err := makePair(opts)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFilesOfOthersAreNotReplaced(t *testing.T) {
	ours, foreign := newPair(t, time.Hour), foreignPair(t)
	for name, files := range map[string]map[string][]byte{
		"complete":          foreign,
		"without CA":        {certFile: foreign[certFile], keyFile: foreign[keyFile]},
		"ours without CA":   {certFile: ours[certFile], keyFile: ours[keyFile]},
		"key alone":         {keyFile: foreign[keyFile]},
		"certificate alone": {certFile: foreign[certFile]},
		"CA alone":          {caFile: foreign[caFile]},
		"with our CA":       {caFile: ours[caFile], certFile: foreign[certFile], keyFile: foreign[keyFile]},
		"with an empty CA":  {caFile: {}, certFile: foreign[certFile], keyFile: foreign[keyFile]},
		"not PEM":           {caFile: []byte("DER"), certFile: []byte("DER"), keyFile: []byte("DER")},
	} {
		dir := t.TempDir()
		writeFiles(t, dir, files)
		_, _, err := EnsureDirectory(dir, testNames, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), "--cert-dir "+dir+": its files are not from the gateway") || !strings.Contains(err.Error(), "use --tls-cert-file "+filepath.Join(dir, certFile)) {
			t.Errorf("%s: %v", name, err)
		}
		if !equalFiles(readFiles(t, dir), files) {
			t.Errorf("%s: files replaced", name)
		}
	}
}

func TestDamagedPairIsReplaced(t *testing.T) {
	t.Parallel()
	a, b := newPair(t, 0), newPair(t, 0)
	cases := map[string]map[string][]byte{
		"all empty":           {caFile: {}, certFile: {}, keyFile: {}},
		"our CA alone":        {caFile: a[caFile]},
		"without certificate": {caFile: a[caFile], keyFile: a[keyFile]},
		"without key":         {caFile: a[caFile], certFile: a[certFile]},
		"without our CA":      {caFile: a[caFile], certFile: []byte(strings.SplitAfterN(string(a[certFile]), "-----END CERTIFICATE-----\n", 2)[0]), keyFile: a[keyFile]},
	}
	for _, name := range []string{caFile, certFile, keyFile} {
		mixed := maps.Clone(a)
		mixed[name] = b[name]
		cases[name+" of another pair"] = mixed
		for _, size := range []int{0, 1, len(a[name]) / 2} {
			damaged := maps.Clone(a)
			damaged[name] = a[name][:size]
			cases[fmt.Sprintf("%d bytes of %s", size, name)] = damaged
		}
	}
	for name, files := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for the disk
			dir := t.TempDir()
			writeFiles(t, dir, files)
			if log := ensure(t, dir, testNames); !strings.Contains(log, "made a self-signed") {
				t.Errorf("log %q", log)
			}
			checkPair(t, dir, testNames)
		})
	}

	// Certificates that an operator added for clients do not matter.
	dir := t.TempDir()
	added := maps.Clone(a)
	added[caFile] = slices.Concat(b[caFile], a[caFile])
	writeFiles(t, dir, added)
	if log := ensure(t, dir, testNames); log != "" {
		t.Errorf("with another CA in ca.crt: %q", log)
	}
}

func TestCertDirErrors(t *testing.T) {
	mkdir := func(path ...string) string {
		t.Helper()
		dir := filepath.Join(path...)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	unreadable, unwritable := t.TempDir(), t.TempDir()
	mkdir(unreadable, keyFile)  // a test may run as root, who may read every file
	mkdir(unwritable, lockFile) // and write to every directory
	for dir, want := range map[string]string{
		file:                      "not a directory: use a directory",
		filepath.Join(file, "x"):  "not a directory: use a directory",
		"/proc/self/fdinfo/certs": "use a directory that the gateway may write to, or --tls-cert-file",
		unreadable:                "make it readable, or use another directory",
		unwritable:                "is a directory: use a directory that the gateway may write to",
	} {
		_, _, err := EnsureDirectory(dir, testNames, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), "--cert-dir "+dir+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "mine" {
		t.Errorf("%q, %v", content, err)
	}
	// A pair that can be used needs no lock: the directory may be a read-only mount.
	writeFiles(t, unwritable, newPair(t, 0))
	if log := ensure(t, unwritable, testNames); log != "" {
		t.Errorf("log %q", log)
	}
	// One that cannot be used says so, not that there is no lock.
	foreign := foreignPair(t)
	writeFiles(t, unwritable, foreign)
	if _, _, err := EnsureDirectory(unwritable, testNames, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "not from the gateway") {
		t.Error(err)
	}
}
