// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package testcluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/localcluster/testcluster"
)

// fake makes the test binary play localcluster up: it is the name of one of fakes.
const fake = "TESTCLUSTER_FAKE"

// timeout is for what has to happen at some time.
const timeout = 3 * time.Minute

// fakes are what a localcluster does, by name. Each returns its exit code.
var fakes = map[string]func() int{
	// old is from before the flag that Start needs.
	"old": func() int {
		fmt.Fprintln(os.Stderr, "localcluster: unknown flag: --until-eof")
		return 1
	},
	// ends ends before it is ready.
	"ends": func() int {
		fmt.Print(strings.Repeat("starting etcd…\n", 10_000), "etcd (pid 7) died: no space\n")
		return 3
	},
	// silent prints nothing.
	"silent": func() int {
		untilEOF()
		return 0
	},
	// slow never becomes ready.
	"slow": func() int {
		fmt.Println("  0.0s  starting etcd…")
		untilEOF()
		return 0
	},
	// stubborn does not end at the end of its input.
	"stubborn": func() int {
		fmt.Println("  0.0s  starting etcd…")
		time.Sleep(timeout)
		return 0
	},
	// ready becomes ready, and fails when it is stopped.
	"ready": func() int {
		becomeReady("etcd (pid 7) died: signal: killed.\n")
		untilEOF()
		return 4
	},
	// dies becomes ready, and ends when the file "die" is in its folder.
	"dies": func() int {
		becomeReady("")
		for _, err := os.Stat(filepath.Join(folder(), "die")); err != nil; _, err = os.Stat(filepath.Join(folder(), "die")) {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("out of luck")
		return 5
	},
	// orphan starts a real cluster, prints its folder, and waits: see TestKilled.
	"orphan": func() int {
		c, err := testcluster.StartContext(context.Background(), testcluster.Options{Nodes: 1})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(c.Dir())
		time.Sleep(timeout)
		return 0
	},
}

func TestMain(m *testing.M) {
	if play := fakes[os.Getenv(fake)]; play != nil {
		os.Exit(play())
	}
	// The real one is $LOCALCLUSTER_BIN, or that of the repository.
	if path, err := filepath.Abs("../../bin/localcluster"); err == nil && os.Getenv("LOCALCLUSTER_BIN") == "" {
		os.Setenv("LOCALCLUSTER_BIN", path)
	}
	os.Exit(m.Run())
}

func untilEOF() { _, _ = io.Copy(io.Discard, os.Stdin) }

// folder is that of up --until-eof --dir DIR.
func folder() string { return os.Args[4] }

// becomeReady prints that it is ready, and more in the same write.
func becomeReady(more string) {
	path := filepath.Join(folder(), "kubeconfig")
	if err := os.WriteFile(path, []byte("kind: Config\n"), 0o600); err != nil {
		panic(err)
	}
	fmt.Printf("  0.0s  starting etcd…\nready https://127.0.0.1:1  kubeconfig %s\n%s", path, more)
}

// options are those of a fake, whose temporary folder is in the returned one.
func options(t *testing.T, name string) (testcluster.Options, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv(fake, name)
	return testcluster.Options{Binary: self, StartTimeout: timeout, StopTimeout: timeout}, temp
}

// checkError fails unless the error has all the texts, and no folder is left.
func checkError(t *testing.T, err error, temp string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error lacks %q: %v", text, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestEnds: a localcluster that ends at once is an error with the end of its output.
func TestEnds(t *testing.T) {
	o, temp := options(t, "ends")
	_, err := testcluster.StartContext(t.Context(), o)
	checkError(t, err, temp, "localcluster up: ended by itself: exit status 3", "starting etcd…", "etcd (pid 7) died: no space")
	if n := len(fmt.Sprint(err)); n > 20_000 {
		t.Errorf("the error has %d bytes", n)
	}
	o, temp = options(t, "old")
	_, err = testcluster.StartContext(t.Context(), o)
	checkError(t, err, temp, "build it from the same release")
}

// TestNeverReady: the start ends with the timeout, and with the context.
func TestNeverReady(t *testing.T) {
	o, temp := options(t, "slow")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := testcluster.StartContext(ctx, o)
	checkError(t, err, temp, "localcluster up: enough")

	o, temp = options(t, "silent")
	o.StartTimeout = 100 * time.Millisecond
	_, err = testcluster.StartContext(t.Context(), o)
	checkError(t, err, temp, "not ready after 100ms", "it has printed nothing")

	o, temp = options(t, "stubborn")
	o.StartTimeout, o.StopTimeout = time.Second, time.Millisecond
	_, err = testcluster.StartContext(t.Context(), o)
	checkError(t, err, temp, "not ready after 1s", "killed, as it did not stop within 1ms")
}

// TestStopErrors: Stop reports an end in disorder, each time.
func TestStopErrors(t *testing.T) {
	for name, want := range map[string]string{"ready": "stopped: exit status 4", "dies": "ended by itself: exit status 5"} {
		t.Run(name, func(t *testing.T) {
			o, temp := options(t, name)
			c, err := testcluster.StartContext(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.URL() + " " + string(c.Kubeconfig()); got != "https://127.0.0.1:1 kind: Config\n" {
				t.Errorf("URL and kubeconfig: %q", got)
			}
			if name == "dies" {
				if err := os.WriteFile(filepath.Join(c.Dir(), "die"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				testcluster.AwaitEnd(t, c, timeout)
			}
			checkError(t, c.Stop(), temp, want)
			checkError(t, c.Stop(), temp, want)
		})
	}
}

// A recorder is a test that records what Start does with it.
type recorder struct {
	testing.TB
	said     string
	cleanups []func()
}

func (r *recorder) Helper()                         {}
func (r *recorder) Failed() bool                    { return true }
func (r *recorder) Logf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) + "\n" }
func (r *recorder) Error(args ...any)               { r.said += fmt.Sprintln(args...) }
func (r *recorder) Fatal(args ...any)               { r.Error(args...); runtime.Goexit() }
func (r *recorder) Cleanup(f func())                { r.cleanups = append(r.cleanups, f) }

// record calls Start, and then the cleanups.
func record(t *testing.T, o testcluster.Options) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		testcluster.Start(r, o)
	}()
	<-done
	for _, f := range r.cleanups {
		f()
	}
	return r.said
}

// TestStartReports: a test that fails logs what the cluster has said since it was ready.
func TestStartReports(t *testing.T) {
	o, _ := options(t, "ready")
	got := record(t, o)
	for _, text := range []string{"localcluster has printed:\netcd (pid 7) died", "stopped: exit status 4"} {
		if !strings.Contains(got, text) {
			t.Errorf("the log lacks %q:\n%s", text, got)
		}
	}
	if strings.Contains(got, "starting etcd") {
		t.Errorf("the log has what happened before it was ready:\n%s", got)
	}
}

// TestNoBinary: the error says where the binary was looked for, and what to do.
func TestNoBinary(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("LOCALCLUSTER_BIN", "")
	missing := filepath.Join(t.TempDir(), "none")
	check := func(o testcluster.Options, where string) {
		t.Helper()
		got := record(t, o)
		for _, text := range []string{"no localcluster in " + where, "make -C watchkeeper bin/localcluster", "$LOCALCLUSTER_BIN"} {
			if !strings.Contains(got, text) {
				t.Errorf("the error lacks %q: %s", text, got)
			}
		}
	}
	check(testcluster.Options{}, "$PATH")
	check(testcluster.Options{Binary: missing}, "Options.Binary")
	t.Setenv("LOCALCLUSTER_BIN", missing)
	check(testcluster.Options{}, "$LOCALCLUSTER_BIN")
	_, err := testcluster.StartContext(t.Context(), testcluster.Options{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v is not os.ErrNotExist", err)
	}
}
