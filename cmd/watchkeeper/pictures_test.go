// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"bufio"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/testing/termtest"
)

var updatePictures = flag.Bool("update-pictures", false, "write the pictures of docs/cli.md")

// pictures are those of docs/cli.md, docs/images/cli-NAME.svg: the screen of a terminal after a
// command, of the recording of make demo.
var pictures = map[string]string{
	"get":      "watchkeeper get deploy,pods -n shop -l app=checkout --at 23:50:56",
	"story":    "watchkeeper story deployment/checkout -n shop",
	"diagnose": "watchkeeper diagnose -n shop --at 23:50:28",
	"history":  "watchkeeper history pod/checkout-979d84455-nsnw5 -n shop --until 23:50:56 --limit 4",
	"changes":  "watchkeeper changes deployments -n shop --since 23:49:00 --until 23:51:00 --spec",
	"diff":     "watchkeeper diff deployments,pods -n shop --from 23:50:08 --to 23:50:30",
	"at":       "watchkeeper at 23:52:10 -- get nodes",
}

const (
	pictureWidth  = 132
	pictureHeight = 40 // at most
)

// serveDemo serves the recording of make demo, and returns the server's URL.
func serveDemo(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "watchkeeper", "open", demo, "--port=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "Starting to serve on "); ok {
			return url
		}
	}
	t.Fatal("the recording is not served")
	return ""
}

// TestPictures: the commands of docs/cli.md print what its pictures show.
func TestPictures(t *testing.T) {
	url := serveDemo(t)
	for name, command := range pictures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := termtest.New(t, pictureWidth, pictureHeight, "WATCHKEEPER_SERVER="+url, "HOME="+t.TempDir(), "KUBECONFIG=", "PAGER=cat", "PATH="+os.Getenv("PATH"))
			term.Type("clear; " + command + "; PS1=%%")
			term.Wait(`^%%$`)
			screen, _, _ := strings.Cut(term.Styled(), "%%")
			screen = "$ \x1b[1m" + command + "\x1b[0m\n" + screen
			comparePicture(t, name, termtest.SVG(pictureWidth, strings.Count(screen, "\n"), command, []termtest.Frame{{Screen: screen}}))
		})
	}
}

// moving is the picture of a table that updates in place: a rollout that crashes, and is
// rolled back.
const moving = "watchkeeper get deploy,pods -n shop -l app=checkout -w --at 23:50:08 --speed"

// TestMovingPicture: the table of the README plays what was recorded. The picture itself is only
// made, not compared: its frames depend on the machine.
func TestMovingPicture(t *testing.T) {
	t.Parallel()
	const width, height = 100, 16
	term := termtest.New(t, width, height, "WATCHKEEPER_SERVER="+serveDemo(t), "HOME="+t.TempDir(), "KUBECONFIG=", "PATH="+os.Getenv("PATH"))
	if !*updatePictures {
		term.Type("clear; " + moving + " 20")
		term.Wait(`^pod/checkout-979d84455-7mkxr +0/1 +CrashLoopBackOff`)
		term.Wait(`(?s)^deployment.apps/checkout +6/6 .*^pod/checkout-748bcf4cf-26jcs +1/1 +Running`)
		term.Keys("q")
		if left := term.Wait(`^\$ ?$`); !strings.Contains(left, "pod/checkout-748bcf4cf-26jcs") {
			t.Errorf("quitting removed the table:\n%s", left)
		}
		term.Type("clear; " + moving + " 0")
		term.Wait(`^error: --speed 0 prints all changes at once`)
		return
	}
	term.Type("clear; " + moving + " 4")
	term.Wait(`^playing`)
	var frames []termtest.Frame
	const every, length = 200 * time.Millisecond, 17 * time.Second
	for range length / every {
		screen := term.Styled()
		if last := len(frames) - 1; last >= 0 && frames[last].Screen == screen {
			frames[last].For += every
		} else {
			frames = append(frames, termtest.Frame{Screen: screen, For: every})
		}
		time.Sleep(every)
	}
	frames[len(frames)-1].For += 3 * time.Second
	term.Keys("q")
	for i := range frames {
		frames[i].Screen = "$ \x1b[1m" + moving + " 4\x1b[0m\n" + frames[i].Screen
	}
	comparePicture(t, "get-watch", termtest.SVG(width, height+1, moving, frames))
}

// comparePicture compares a picture with the one in docs/images.
func comparePicture(t *testing.T, name, svg string) {
	t.Helper()
	file := filepath.Join("..", "..", "docs", "images", "cli-"+name+".svg")
	if *updatePictures {
		if err := os.WriteFile(file, []byte(svg), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != svg {
		t.Errorf("%s shows something else than the command does: look at it, and write it again with 'make picture'", file)
	}
}
