// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// maxRun is how long a program of the archive may take for what is checked.
const maxRun = time.Minute

// run unpacks an archive, and runs its binary as a user would.
func (c *checker) run(content tree, program string) error {
	dir, err := os.MkdirTemp("", "release-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for path, f := range content {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.content, f.mode.Perm()); err != nil {
			return err
		}
	}
	program = filepath.Join(dir, program)
	out, err := exec.Command(program, "version", "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("version: %w", err)
	}
	var about struct {
		Version, Revision string
		Modified          bool
	}
	if err := json.Unmarshal(out, &about); err != nil || about.Version != "v"+c.version || about.Revision != c.revision || about.Modified {
		return fmt.Errorf("version prints %s", out)
	}
	for shell, name := range map[string]string{"bash": "watchkeeper.bash", "zsh": "_watchkeeper", "fish": "watchkeeper.fish", "powershell": "watchkeeper.ps1"} {
		if out, err := exec.Command(program, "completion", shell).Output(); err != nil || !bytes.Equal(out, content["completions/"+name].content) {
			return fmt.Errorf("completions/%s is not what completion %s prints (%v)", name, shell, err)
		}
	}
	return c.open(program, dir)
}

// open serves the recording of the archive, reads it and the page, and ends it.
func (c *checker) open(program, dir string) (err error) {
	cmd := exec.Command(program, "open", "demo/incident.wkr", "--port", "0")
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	late := time.AfterFunc(maxRun, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	read := func() error {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			return err
		}
		url, ok := strings.CutPrefix(strings.TrimSpace(line), "Starting to serve on ")
		if !ok {
			return fmt.Errorf("the first line is %q", line)
		}
		for path, want := range map[string]string{"/api/v1/pods": `"kind":"PodList"`, "/ui/": "<script"} {
			answer, err := http.Get(url + path)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || !bytes.Contains(text, []byte(want)) {
				return fmt.Errorf("%s: %s, without %s (%v)", path, answer.Status, want, err)
			}
		}
		return nil
	}
	err = read()
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	if ended := cmd.Wait(); err != nil || ended != nil {
		return fmt.Errorf("open: %v, %v: %s", err, ended, stderr.Bytes())
	}
	return nil
}
