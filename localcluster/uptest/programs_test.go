// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package uptest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// program says how it was started, and has its process ID in a volume.
const program = `#!/bin/sh
echo "arguments $*, limit $LIMIT of $NAME"
grep -q 'token: ' "$KUBECONFIG" && echo 'a token'
for argument; do case $argument in --dir=*) echo $$ >"${argument#--dir=}/pid" ;; esac; done
exec sleep 100000
`

const podWithProgram = `
apiVersion: v1
kind: Pod
metadata: {name: POD}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: registry.example/a/tool:1.2@sha256:0123456789012345678901234567890123456789012345678901234567890123
    args: [--listen=0.0.0.0:8001, --dir=/data/x, --dir=/data]
    env:
    - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    resources: {limits: {cpu: "3"}}
    ports: [{containerPort: 8001}]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - name: data
    VOLUME
`

// TestPrograms: containers of an image run a program on this machine until their Pod is
// deleted.
func TestPrograms(t *testing.T) {
	t.Parallel()
	bin := binary(t)
	for value, want := range map[string]string{
		"tool":               "must be IMAGE=PROGRAM",
		"registry/tool=sh":   "must be IMAGE=PROGRAM",
		"tool=/no/such/file": "no such file",
	} {
		out, err := exec.Command(bin, "up", "--dir", t.TempDir(), "--run", value).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("--run %s: %v, %s", value, err, out)
		}
	}

	file := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(file, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	c := start(t, t.TempDir(), "--nodes", "1", "--run", "tool="+file)
	apply := func(name, volume string) {
		t.Helper()
		manifest := filepath.Join(t.TempDir(), "pod.yaml")
		if err := os.WriteFile(manifest, []byte(strings.NewReplacer("POD", name, "VOLUME", volume).Replace(podWithProgram)), 0o600); err != nil {
			t.Fatal(err)
		}
		c.kubectl("apply", "-f", manifest)
	}
	apply("one", "emptyDir: {}")
	volume := filepath.Join(c.dir, "pod", "run", "default_one", "volumes", "data")
	eventually(t, "log of the program", func() error {
		out, err := c.try("kubectl", "--dir", c.dir, "logs", "one")
		for _, want := range []string{"arguments --listen=127.", ":8001 --dir=" + volume + "/x --dir=" + volume + ", limit 3 of one\n", "a token\n"} {
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("no %q in %s", want, out)
			}
		}
		return err
	})
	// running returns the process of the program.
	running := func() (pid int, err error) {
		text, err := os.ReadFile(filepath.Join(volume, "pid"))
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		if err == nil && !alive(pid) {
			err = errors.New("it does not run")
		}
		return pid, err
	}
	first, err := running()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := 0
	eventually(t, "program after its end", func() (err error) {
		if second, err = running(); err == nil && second == first {
			err = errors.New("it still runs")
		}
		return err
	})
	c.kubectl("delete", "pod", "one")
	eventually(t, "end of the program", func() error {
		if alive(second) {
			return errors.New("it runs")
		}
		return nil
	})

	apply("two", "configMap: {name: kube-root-ca.crt}")
	c.awaitSaid("Pod default/two: " + file + " is not run: its volume data is neither a claim nor an emptyDir")
	// Other Pods have simulated containers, whose commands run here only with --exec.
	c.kubectl("run", "other", "--image=registry.example/other")
	c.kubectl("wait", "pod/other", "--for=condition=Ready", "--timeout=150s")
	if out := c.kubectl("logs", "other"); !strings.Contains(out, "listening on :8080") {
		t.Errorf("log of another Pod: %s", out)
	}
	for _, pod := range []string{"one", "other"} {
		if out, err := c.try("kubectl", "exec", pod, "--", "id"); err == nil || !strings.Contains(out, "up --exec") && pod == "other" {
			t.Errorf("exec in %s: %v, %s", pod, err, out)
		}
	}
}
