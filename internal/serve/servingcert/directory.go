// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/cert"
)

// The files of a self-signed pair. tls.crt has the certificate and that of its CA;
// ca.crt has the latter for clients. The CA's key is not kept, so each pair has a CA
// of its own.
const (
	caFile   = "ca.crt"
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// CAFile is the file of the CA in the directory of [EnsureDirectory].
const CAFile = caFile

// A pair is replaced in two steps, so that a process that is killed at any moment
// leaves no mixture that the next one cannot repair:
//
//  1. The three files are written to a new directory, which is renamed to .next.
//  2. They are moved from .next to the directory above, and .next is removed.
//
// Only a process with the lock does this. Before anything else, it completes step 2
// if it finds a .next.
const (
	lockFile   = ".lock"
	nextDir    = ".next"
	unfinished = ".making-" // prefix of the directories of step 1
)

const (
	// minValidity is how long a pair must remain valid to be used. A server that
	// runs for longer replaces it in time.
	minValidity = 30 * 24 * time.Hour
	// RenewInterval is the time between the checks of a running server.
	RenewInterval = 24 * time.Hour
	// maxNames limits the names that a new pair takes over from the previous one.
	maxNames = 100
	// commonHost is in the common names that the library gives to the certificates.
	commonHost = "localhost"
)

// ourCA matches the common name of the CA of a pair that EnsureDirectory made.
var ourCA = regexp.MustCompile(`^` + commonHost + `-ca@[0-9]+$`)

// Names returns the names that a self-signed certificate is for: the ways
// to reach this machine from itself, its host name, the IP address that the server
// listens on, and the values of --tls-san.
func Names(address string, sans []string) ([]string, error) {
	var names []string
	if host, err := os.Hostname(); err == nil {
		if name, ok := certName(host); ok {
			names = append(names, name)
		}
	}
	address, _, _ = strings.Cut(strings.Trim(address, "[]"), "%") // a certificate has no zones
	if ip := net.ParseIP(address); ip != nil && !ip.IsUnspecified() {
		names = append(names, ip.String())
	}
	return SharedNames(sans, names...)
}

// SharedNames returns the names of a certificate that several machines serve: localhost,
// the values of --tls-san, and more.
func SharedNames(sans []string, more ...string) ([]string, error) {
	names := append([]string{commonHost, "127.0.0.1", "::1"}, more...)
	for _, san := range sans {
		name, ok := certName(san)
		if !ok {
			return nil, fmt.Errorf("--tls-san %q is neither a DNS name nor an IP address: use one such as gateway.example.com, without scheme and port", san)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// certName returns a DNS name or an IP address as a certificate has it.
func certName(s string) (string, bool) {
	if ip := net.ParseIP(s); ip != nil {
		return ip.String(), true
	}
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	valid := len(validation.IsDNS1123Subdomain(s)) == 0 || len(validation.IsWildcardDNS1123Subdomain(s)) == 0
	return s, valid
}

// EnsureDirectory makes a self-signed certificate for names in dir, unless there is
// one that can be used, and returns the files of the certificate and its key. It never
// replaces files of others. Concurrent processes make one certificate.
func EnsureDirectory(dir string, names []string, log *slog.Logger) (crt, key string, err error) {
	fail := func(err error) (string, string, error) {
		return "", "", fmt.Errorf("--cert-dir %s: %w", dir, err)
	}
	const hint = "use a directory that the gateway may write to, or --tls-cert-file and --tls-private-key-file for your own certificate"
	crt, key = filepath.Join(dir, certFile), filepath.Join(dir, keyFile)
	// Without the lock, which needs a writable directory, a pair that can be used is
	// all that is certain: another process may be replacing it.
	reason, _, first := inspect(dir, names)
	if first == nil && reason == "" {
		return crt, key, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(fmt.Errorf("%w: %s", err, hint))
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(dir, lockFile)).Lock()
	if err != nil {
		if first != nil {
			err = first
		}
		return fail(fmt.Errorf("%w: %s", err, hint))
	}
	defer unlock()
	if err := install(dir); err != nil {
		return fail(fmt.Errorf("%w: %s", err, hint))
	}
	reason, also, err := inspect(dir, names)
	if err != nil {
		return fail(err)
	}
	if reason == "" {
		return crt, key, nil
	}
	names = mergeNames(names, also)
	if err := replace(dir, names); err != nil {
		return fail(fmt.Errorf("%w: %s", err, hint))
	}
	if defect, _, err := inspect(dir, names); err != nil {
		return fail(err)
	} else if defect != "" {
		return fail(fmt.Errorf("the new certificate cannot be used: %s", defect))
	}
	log.Info("made a self-signed TLS certificate; clients have to trust its CA", "reason", reason, "ca", filepath.Join(dir, caFile), "names", names)
	return crt, key, nil
}

// RenewDirectory replaces the pair before it expires, until ctx ends. The server
// reloads it as it does with any pair. What fails is told to failed.
func RenewDirectory(ctx context.Context, dir string, names []string, interval time.Duration, log *slog.Logger, failed Failed) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if _, _, err := EnsureDirectory(dir, names, log); err != nil {
				failed("self-signed TLS certificate not renewed, it expires soon or is damaged", "err", err)
			}
		}
	}
}

// inspect returns why dir needs a new pair, or "" if its pair can be used. A pair
// that lacks names keeps those that it has (also), or processes with different names
// and the same directory would replace each other's pair every day. An error means
// that the files must not be replaced.
func inspect(dir string, names []string) (reason string, also []string, err error) {
	files := map[string][]byte{}
	size := 0
	for _, name := range []string{caFile, certFile, keyFile} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err == nil:
			files[name] = content
			size += len(content)
		case !errors.Is(err, fs.ErrNotExist):
			return "", nil, fmt.Errorf("%w: make it readable, or use another directory", err)
		}
	}
	if size == 0 {
		return "there is no certificate", nil, nil
	}
	foreign := func(why string) error {
		return fmt.Errorf("its files are not from the gateway (%s) and are not replaced: for your own certificate use --tls-cert-file %s and --tls-private-key-file %s; for a self-signed one use another directory",
			why, filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	}
	if files[caFile] == nil {
		return "", nil, foreign("there is no " + caFile)
	}
	// Errors show below as missing certificates.
	cas, _ := cert.ParseCertsPEM(files[caFile])
	chain, _ := cert.ParseCertsPEM(files[certFile])
	ours := slices.DeleteFunc(slices.Concat(cas, chain), func(c *x509.Certificate) bool {
		return !ourCA.MatchString(c.Subject.CommonName) || c.CheckSignatureFrom(c) != nil
	})
	if len(ours) == 0 {
		return "", nil, foreign("they have no CA that it made")
	}
	if len(chain) > 0 && !slices.ContainsFunc(ours, func(ca *x509.Certificate) bool { return chain[0].CheckSignatureFrom(ca) == nil }) {
		return "", nil, foreign(certFile + " is not signed by " + caFile)
	}
	if len(chain) != 2 {
		return certFile + " is missing or damaged", nil, nil
	}
	leaf, ca := chain[0], chain[1]
	if !slices.ContainsFunc(cas, ca.Equal) {
		return caFile + " is damaged, or not that of " + certFile, nil, nil
	}
	if _, err := tls.X509KeyPair(files[certFile], files[keyFile]); err != nil {
		return keyFile + " is missing or damaged, or not that of " + certFile, nil, nil
	}
	for _, c := range chain {
		if reason := notValid(c); reason != "" {
			return reason, nil, nil
		}
	}
	reason, also = missingName(leaf, names)
	return reason, also, nil
}

// notValid returns why a certificate cannot be used now, or not for long, by its time.
func notValid(c *x509.Certificate) (reason string) {
	switch now := time.Now(); {
	case c.NotBefore.After(now):
		return "the certificate is valid only from " + c.NotBefore.Format(time.RFC3339)
	case c.NotAfter.Before(now.Add(minValidity)):
		return "the certificate is valid only until " + c.NotAfter.Format(time.RFC3339)
	}
	return ""
}

// missingName returns why a certificate is not for names, and, in that case, the names
// that it is for.
func missingName(leaf *x509.Certificate, names []string) (reason string, also []string) {
	for _, name := range names {
		if leaf.VerifyHostname(name) != nil {
			also = slices.Clone(leaf.DNSNames)
			for _, ip := range leaf.IPAddresses {
				also = append(also, ip.String())
			}
			return "the certificate is not for " + name, also
		}
	}
	return "", nil
}

// mergeNames returns names and those of a previous pair, unless that are too many.
func mergeNames(names, also []string) []string {
	all := slices.Concat(names, also)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > maxNames {
		return names
	}
	return all
}

// replace makes a new pair and installs it. The caller has the lock.
func replace(dir string, names []string) error {
	files, err := makePair(pairOptions(names))
	if err != nil {
		return err
	}
	if err := stage(dir, files); err != nil {
		return err
	}
	return install(dir)
}

func pairOptions(names []string) cert.SelfSignedCertKeyOptions {
	opts := cert.SelfSignedCertKeyOptions{Host: commonHost}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			opts.AlternateIPs = append(opts.AlternateIPs, ip)
		} else if name != commonHost {
			opts.AlternateDNS = append(opts.AlternateDNS, name)
		}
	}
	return opts
}

// makePair returns the contents of the files of a new pair.
func makePair(opts cert.SelfSignedCertKeyOptions) (map[string][]byte, error) {
	crt, key, err := cert.GenerateSelfSignedCertKeyWithOptions(opts)
	if err != nil {
		return nil, err
	}
	_, ca := pem.Decode(crt) // what follows the server's certificate
	return map[string][]byte{caFile: ca, certFile: crt, keyFile: key}, nil
}

// stage writes the files to .next, which must not exist.
func stage(dir string, files map[string][]byte) error {
	temp, err := os.MkdirTemp(dir, unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) // unless it was renamed
	for name, content := range files {
		mode := fs.FileMode(0o644)
		if name == keyFile {
			mode = 0o600
		}
		if err := writeSynced(filepath.Join(temp, name), content, mode); err != nil {
			return err
		}
	}
	return os.Rename(temp, filepath.Join(dir, nextDir))
}

func writeSynced(file string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// install moves the files of .next, if there are any, to dir. It removes what killed
// processes have not completed.
func install(dir string) error {
	next := filepath.Join(dir, nextDir)
	// ca.crt is the first, so that it is there for a client that meets the new tls.crt.
	for _, name := range []string{caFile, keyFile, certFile} {
		if err := os.Rename(filepath.Join(next, name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), unfinished) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
