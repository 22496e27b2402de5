// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// Every state in which a process can be killed ends with one of the two pairs.
func TestInterruptedReplacementIsCompleted(t *testing.T) {
	before, after := newPair(t, minValidity), newPair(t, 0) // before has to be replaced
	order := []string{caFile, keyFile, certFile}
	for _, first := range []bool{true, false} {
		for done := range len(order) + 1 {
			dir := t.TempDir()
			if !first {
				writeFiles(t, dir, before)
			}
			if err := stage(dir, after); err != nil {
				t.Fatal(err)
			}
			for _, name := range order[:done] {
				if err := os.Rename(filepath.Join(dir, nextDir, name), filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if log := ensure(t, dir, testNames); log != "" {
				t.Errorf("first %t, %d files moved: %s", first, done, log)
			}
			if done == len(order) { // the pair can be used, and nobody needs the lock
				if err := install(dir); err != nil {
					t.Fatal(err)
				}
			}
			checkPair(t, dir, testNames)
			if !equalFiles(readFiles(t, dir), after) {
				t.Errorf("first %t, %d files moved: another pair", first, done)
			}
		}
	}

	// The files of one that was killed before it was complete, among them a key.
	dir := t.TempDir()
	writeFiles(t, filepath.Join(dir, unfinished+"1"), map[string][]byte{keyFile: after[keyFile]})
	ensure(t, dir, testNames)
	checkPair(t, dir, testNames)
}

// runChild runs TestChild in another process, which does as told.
func runChild(t *testing.T, mode string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), "SELFSIGNED_CHILD="+mode+" "+strings.Join(args, " "))
	return cmd
}

// TestChild is what the processes of the other tests do.
func TestChild(t *testing.T) {
	args := strings.Fields(os.Getenv("SELFSIGNED_CHILD"))
	if len(args) == 0 {
		return // the process of the other tests
	}
	switch mode, dir := args[0], args[1]; mode {
	case "ensure":
		log := slog.New(slog.NewTextHandler(os.Stdout, nil))
		if _, _, err := EnsureDirectory(dir, args[2:], log); err != nil {
			t.Fatal(err)
		}
	case "replace": // repeatedly, by pairs that are already made, until killed
		pairs := []map[string][]byte{readFiles(t, args[2]), readFiles(t, args[3])}
		for i := 0; ; i++ {
			unlock, err := lockedfile.MutexAt(filepath.Join(dir, lockFile)).Lock()
			if err != nil {
				t.Fatal(err)
			}
			if err := install(dir); err != nil {
				t.Fatal(err)
			}
			if err := stage(dir, pairs[i%2]); err != nil {
				t.Fatal(err)
			}
			if err := install(dir); err != nil {
				t.Fatal(err)
			}
			unlock()
			if i == 0 {
				fmt.Println("replacing")
			}
		}
	}
}

func TestKilledWhileReplacing(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	dir, sources := t.TempDir(), []string{t.TempDir(), t.TempDir()}
	for _, source := range sources {
		writeFiles(t, source, newPair(t, 0))
	}
	pairs := []map[string][]byte{readFiles(t, sources[0]), readFiles(t, sources[1])}
	interrupted, moving := 0, 0
	for range 60 {
		child := runChild(t, "replace", append([]string{dir}, sources...)...)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "replacing" {
		}
		time.Sleep(rand.N(5 * time.Millisecond))
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			t.Errorf("child: %s", lines.Text())
		}
		if err := child.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("child: %v", err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != 4 { // three files and the lock
			interrupted++
		}
		if _, err := os.Stat(filepath.Join(dir, nextDir)); err == nil {
			moving++
		}
		if log := ensure(t, dir, testNames); log != "" {
			t.Errorf("made again: %s", log)
		}
		if err := install(dir); err != nil { // if the pair could be used, nobody has
			t.Fatal(err)
		}
		checkPair(t, dir, testNames)
		if got := readFiles(t, dir); !equalFiles(got, pairs[0]) && !equalFiles(got, pairs[1]) {
			t.Fatal("neither of the two pairs")
		}
	}
	t.Logf("%d of 60 killed while files were written or moved, %d of them while moved", interrupted, moving)
	if interrupted == 0 {
		t.Error("no process was killed while it replaced the pair: the test shows nothing")
	}
}

func TestConcurrentStarts(t *testing.T) {
	t.Parallel()
	for name, namesOf := range map[string]func(i int) []string{
		"same names":      func(int) []string { return testNames },
		"different names": func(i int) []string { return append(slices.Clone(testNames), fmt.Sprintf("process%d.test", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "certs")
			var all []string
			var wg sync.WaitGroup
			outputs := make([]string, 6)
			for i := range outputs {
				names := namesOf(i)
				all = append(all, names...)
				wg.Go(func() {
					if i%2 == 0 { // goroutines as well, since tests of the server share a process
						var out bytes.Buffer
						if _, _, err := EnsureDirectory(dir, names, slog.New(slog.NewTextHandler(&out, nil))); err != nil {
							t.Error(err)
						}
						outputs[i] = out.String()
						return
					}
					out, err := runChild(t, "ensure", append([]string{dir}, names...)...).CombinedOutput()
					if err != nil {
						t.Errorf("%v: %s", err, out)
					}
					outputs[i] = string(out)
				})
			}
			wg.Wait()
			checkPair(t, dir, all)
			made := strings.Count(strings.Join(outputs, ""), "made a self-signed")
			if name == "same names" && made != 1 || made < 1 {
				t.Errorf("made %d times: %q", made, outputs)
			}
		})
	}
}

// A server that runs replaces the pair and uses the new one.
func TestSelfSignedIsRenewedWhileServing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ensure(t, dir, testNames)
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	files, err := OpenFiles(filepath.Join(dir, certFile), filepath.Join(dir, keyFile), log.Error)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: files.Certificate})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				io.Copy(conn, conn) //nolint:errcheck // the client closes
			})
		}
	})
	dial := func() (*tls.Conn, error) {
		ca, err := os.ReadFile(filepath.Join(dir, caFile))
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		return tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: pool})
	}
	old, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	echo := func(conn net.Conn) {
		t.Helper()
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	echo(old)

	writeFiles(t, dir, newPair(t, minValidity))
	soon, err := os.ReadFile(filepath.Join(dir, certFile))
	if err != nil {
		t.Fatal(err)
	}
	var renewals bytes.Buffer
	renewing := make(chan struct{})
	go func() {
		defer close(renewing)
		log := slog.New(slog.NewTextHandler(&renewals, nil))
		RenewDirectory(ctx, dir, testNames, time.Millisecond, log, log.Error)
	}()
	deadline := time.Now().Add(time.Minute)
	for {
		conn, err := dial() // fails until the server has loaded the new pair
		if err == nil {
			leaf := conn.ConnectionState().PeerCertificates[0]
			conn.Close()
			if time.Until(leaf.NotAfter) > 300*24*time.Hour && !leaf.Equal(old.ConnectionState().PeerCertificates[0]) {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new pair is not used: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	echo(old) // the connection has remained
	old.Close()
	cancel()
	<-renewing
	if n := strings.Count(renewals.String(), "made a self-signed"); n != 1 {
		t.Errorf("renewed %d times: %s", n, &renewals)
	}
	if now := readFiles(t, dir)[certFile]; bytes.Equal(now, soon) {
		t.Error("not renewed")
	}
	listener.Close()
	wg.Wait()

	// A renewal that fails is logged, and tried again.
	writeFiles(t, dir, foreignPair(t))
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	failures := make(logged, 3)
	done := make(chan struct{})
	go func() {
		defer close(done)
		RenewDirectory(ctx, dir, testNames, time.Millisecond, slog.New(slog.DiscardHandler), slog.New(slog.NewTextHandler(failures, nil)).Error)
	}()
	for range 3 {
		if line := <-failures; !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "--cert-dir") {
			t.Errorf("log %q", line)
		}
	}
	cancel()
	for {
		select {
		case <-failures: // the last lines
		case <-done:
			return
		}
	}
}

// logged has the lines of a log.
type logged chan string

func (l logged) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
