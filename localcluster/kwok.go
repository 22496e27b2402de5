// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokconfig "sigs.k8s.io/kwok/pkg/apis/config/v1alpha1"
	"sigs.k8s.io/yaml"
)

// ownStages are the stages that kwok's defaults do not have: a slow start and crash
// loops.
//
//go:embed stages/*.yaml
var ownStages embed.FS

// writeKwokConfig writes kwok's configuration: how nodes and Pods change (stages), and
// the targets of `kubectl logs`, `exec`, `attach` and `port-forward`, which are the
// same for every container (see podCommands).
//
// more, unless empty, is the directory of further stages (`up --stages`).
func (c cluster) writeKwokConfig(s state, more string) error {
	var out bytes.Buffer
	add := func(document string) {
		fmt.Fprintf(&out, "---\n%s\n", strings.TrimSpace(document))
	}
	add(nodefast.DefaultNodeInit)
	add(nodeheartbeat.DefaultNodeHeartbeatWithLease)
	add(podfast.DefaultPodReady)
	add(podfast.DefaultPodComplete)
	add(podfast.DefaultPodDelete)
	own, err := fs.Sub(ownStages, "stages")
	if err != nil {
		return err
	}
	if err := eachStage(own, add); err != nil {
		return err
	}
	if more != "" {
		if err := eachStage(os.DirFS(more), add); err != nil {
			return err
		}
	}
	for _, object := range []any{
		kwokOptions(),
		everyPod("ClusterLogs", "logs", map[string]any{
			"logsFile":         c.path("pod", "container.log"),
			"previousLogsFile": c.path("pod", "previous.log"),
			"follow":           true,
		}),
		everyPod("ClusterAttach", "attaches", map[string]any{
			"logsFile": c.path("pod", "container.log"),
		}),
		everyPod("ClusterExec", "execs", map[string]any{
			"local": map[string]any{"workDir": c.path("pod", "root")},
		}),
		everyPod("ClusterPortForward", "forwards", map[string]any{
			"target": map[string]any{"address": "127.0.0.1", "port": s.Ports[portPod]},
		}),
	} {
		data, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		add(string(data))
	}
	return os.WriteFile(c.path("kwok.yaml"), out.Bytes(), 0o600)
}

// eachStage calls add with the content of each *.yaml of a directory, of which there has
// to be one.
func eachStage(dir fs.FS, add func(string)) error {
	names, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errors.New("the directory of --stages has no *.yaml")
	}
	for _, name := range names {
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		add(string(data))
	}
	return nil
}

// kwokName is the environment variable with the name that kwok gives itself in its
// User-Agent. The API server takes the manager in metadata.managedFields from there.
const kwokName = "LOCALCLUSTER_KWOK_NAME"

// nameKubelet lets kwok name itself kubelet, so that what stages show of a kubelet has
// the manager that it has in a real cluster.
func nameKubelet(specs []spec) {
	for i := range specs {
		if specs[i].name == kwokController {
			specs[i].env = append(specs[i].env, kwokName+"=kubelet")
		}
	}
}

// kwokOptions raises the number of workers, so that the Pods of `localcluster load`
// become Running as fast as they are created. It also sets kwok's defaults, which kwok
// applies only if there is no configuration object at all.
func kwokOptions() *kwokconfig.KwokConfiguration {
	options := &kwokconfig.KwokConfiguration{}
	options.APIVersion, options.Kind = kwokconfig.GroupVersion.String(), kwokconfig.KwokConfigurationKind
	kwokconfig.SetObjectDefaults_KwokConfiguration(options)
	options.Options.PodPlayStageParallelism = 16
	return options
}

// everyPod returns a kwok object of the given kind that applies to all Pods.
func everyPod(kind, list string, entry map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "kwok.x-k8s.io/v1alpha1",
		"kind":       kind,
		"metadata":   map[string]any{"name": "every-pod"},
		"spec":       map[string]any{list: []any{entry}},
	}
}

// All simulated containers share these files:
//
//	pod/container.log   `kubectl logs`: a line per second, written by up
//	pod/previous.log    `kubectl logs --previous`
//	pod/bin/            the commands that `kubectl exec` finds
//	pod/root/           the working directory of exec
//
// kwok runs commands of exec on this machine, as the user who runs up. PATH has only
// the commands below, against an accidental `rm -rf`. That is no sandbox, and need not
// be one: exec requires the administrator's credentials of a test cluster on loopback.
var podCommands = []string{
	"sh", "echo", "cat", "ls", "env", "printenv", "date", "hostname", "id", "pwd",
	"printf", "seq", "sleep", "head", "tail", "tee", "wc", "grep", "sort",
	"true", "false", "test", "tty", "stty", "uname", "whoami",
}

// maxContainerLog is the size in bytes at which pod/container.log is replaced by a new
// file.
const maxContainerLog = 4 << 20

// servePods creates these files and serves the HTTP target of port-forward until ctx
// ends. The returned function waits for the end.
func servePods(ctx context.Context, c cluster, port int) (wait func(), err error) {
	for _, name := range []string{"bin", "root"} {
		if err := os.MkdirAll(c.path("pod", name), 0o700); err != nil {
			return nil, err
		}
	}
	for _, name := range podCommands {
		target, err := exec.LookPath(name)
		if err != nil {
			continue // not on this machine
		}
		if err := os.Symlink(target, c.path("pod", "bin", name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	previous := logLine("starting") + logLine("fatal: cannot reach the database, giving up")
	if err := os.WriteFile(c.path("pod", "previous.log"), []byte(previous), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.path("pod", "container.log"), []byte(logLine("starting")+logLine("listening on :8080")), 0o600); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello from a simulated pod\n%s %s\n", r.Method, r.URL)
	})}
	var group sync.WaitGroup
	group.Go(func() { _ = server.Serve(listener) }) // until Close
	group.Go(func() { appendLog(ctx, c.path("pod", "container.log")) })
	context.AfterFunc(ctx, func() { server.Close() })
	return group.Wait, nil
}

// appendLog writes a line of an HTTP access log per second.
func appendLog(ctx context.Context, path string) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		line := logLine(fmt.Sprintf("GET /healthz 200 request=%d", n))
		if n%5 == 0 {
			line = logLine(fmt.Sprintf("GET /orders/%d 200 %dms request=%d", 1000+n, 3+n%17, n))
		}
		// An error is ignored: etcd notices a full disk, and the log is only simulated.
		_ = appendLine(path, line)
	}
}

func appendLine(path, line string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > maxContainerLog {
		// `kubectl logs -f` notices the new file.
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(line)
	return err
}

// logLine formats a line as container runtimes do: time, stream, F for a full line.
func logLine(text string) string {
	return fmt.Sprintf("%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), text)
}
