// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/watchkeeper/watchkeeper/internal/testing/freeport"
	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// A user has kubectl, the plugin, and a context of the cluster with a namespace.
type user struct {
	dir string
	env []string
}

func newUser(t *testing.T, namespace string) *user {
	t.Helper()
	u := &user{dir: t.TempDir()}
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Contexts {
		c.Namespace = namespace
	}
	if err := clientcmd.WriteToFile(*config, filepath.Join(u.dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(built)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"kubectl": cluster.Kubectl(t.Context()).Args[0], "kubectl-watchkeeper": program} {
		if err := os.Symlink(target, filepath.Join(u.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	u.env = append(os.Environ(), "PATH="+u.dir+string(os.PathListSeparator)+os.Getenv("PATH"), "LOCALCLUSTER_DIR="+u.dir,
		"HOME="+u.dir, "KUBECACHEDIR="+u.dir, "WATCHKEEPER_SERVER=", "WATCHKEEPER_SERVICE=")
	return u
}

// start starts a line of the shell in a process group of its own, which ends with the test.
// said returns its output so far.
func (u *user) start(t *testing.T, line string, env ...string) (said func() string, ended <-chan error) {
	t.Helper()
	out := &logtest.Log{}
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = u.dir, append(u.env, env...), out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		end <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if it has ended
		<-done
	})
	return out.String, end
}

// do runs a line of the shell to its end, and returns its output.
func (u *user) do(t *testing.T, line string, env ...string) (string, error) {
	t.Helper()
	said, ended := u.start(t, line, env...)
	select {
	case err := <-ended:
		return said(), err
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s does not end: %s", line, said())
		return "", nil
	}
}

// await waits until a pattern is in the output of a line.
func await(t *testing.T, said func() string, pattern string) {
	t.Helper()
	eventually(t, pattern, func(context.Context) error {
		if !regexp.MustCompile(pattern).MatchString(said()) {
			return errors.New(said())
		}
		return nil
	})
}

// steps returns the commands of the notes: those that are indented.
func steps(notes string) (commands []string) {
	for line := range strings.Lines(notes) {
		if command, ok := strings.CutPrefix(line, "   kubectl "); ok {
			commands = append(commands, "kubectl "+strings.TrimSpace(command))
		}
	}
	return commands
}

// running are values with which localcluster runs what the Pods would run.
func running(more map[string]any) map[string]any {
	values := map[string]any{"image": map[string]any{"repository": "localhost/" + runImage}}
	maps.Copy(values, more)
	return values
}

// TestNotes: what the notes say works, word for word.
func TestNotes(t *testing.T) {
	t.Parallel()
	namespace, release := install(t, running(nil))
	port, err := freeport.Pick(10000, 10000)
	if err != nil {
		t.Fatal(err)
	}
	commands := steps(strings.ReplaceAll(release.Info.Notes, "8443", port))
	if len(commands) != 4 {
		t.Fatalf("%q", commands)
	}
	u := newUser(t, "default")
	if out, err := u.do(t, commands[0]); err != nil {
		t.Fatalf("%s: %v: %s", commands[0], err, out)
	}
	eventually(t, "CA", func(context.Context) error { // a Pod is ready here before its program serves
		if out, err := u.do(t, commands[1]); err != nil {
			return errors.New(out)
		}
		if ca, err := os.ReadFile(filepath.Join(u.dir, "watchkeeper-ca.crt")); err != nil || len(ca) == 0 {
			return fmt.Errorf("no CA: %w", err)
		}
		return nil
	})
	said, _ := u.start(t, commands[2])
	await(t, said, "Forwarding from 127.0.0.1:"+port)
	// localcluster's kubectl uses its own cluster's kubeconfig only without --server.
	said, _ = u.start(t, commands[3], "KUBECONFIG="+filepath.Join(u.dir, "kubeconfig"))
	await(t, said, `NAMESPACE +NAME +READY[^\n]*\n(.*\n)*`+namespace+` +watchkeeper-\S+ +1/1`)
}

// TestPlugin: kubectl's plugin uses the context's namespace, and finds the gateway in the
// cluster, which has the past.
func TestPlugin(t *testing.T) {
	t.Parallel()
	makeVolume(t, "plugin", "plugin")
	namespace, _ := install(t, running(map[string]any{"replicas": 1,
		"recording": map[string]any{"enabled": true, "volume": map[string]any{"size": "1Gi", "storageClass": "plugin", "whenDeleted": "Delete"}}}))
	u := newUser(t, namespace)
	service := "WATCHKEEPER_SERVICE=" + namespace + "/" + name
	deployments := api.AppsV1().Deployments(namespace)
	if _, err := deployments.Create(t.Context(), deployment("x", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "history", func(context.Context) error {
		out, err := u.do(t, "kubectl watchkeeper history deploy/x", service)
		if err == nil && !strings.Contains(out, "recorded history begins") && !strings.Contains(out, "created") {
			err = errors.New("no version")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	for line, want := range map[string]string{
		"kubectl watchkeeper get deploy x -o name --at 0s": "deployment.apps/x\n",
		"kubectl watchkeeper history deploy/x -n default":  "default",
	} {
		if out, _ := u.do(t, line, service); !strings.Contains(out, want) {
			t.Errorf("%s: %s", line, out)
		}
	}

	// Another namespace than watchkeeper has to be named.
	out, err := u.do(t, "kubectl watchkeeper history deploy/x")
	if err == nil || !strings.Contains(out, "if you trust") || !strings.Contains(out, namespace+"/"+name) {
		t.Errorf("%v: %s", err, out)
	}

	// A command that goes on finds the next Pod.
	said, _ := u.start(t, "kubectl watchkeeper changes -w --since 1h deploy", service)
	change := func(n int32) {
		t.Helper()
		if _, err := u.do(t, "kubectl scale deploy/x --replicas="+strconv.Itoa(int(n))); err != nil {
			t.Fatal(err)
		}
	}
	change(2)
	await(t, said, "replicas 1 → 2")
	if out, err := u.do(t, "kubectl delete pod --wait "+name+"-0"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	change(3)
	await(t, said, "replicas 2 → 3")
}

// deployment returns a Deployment of Pods that the Pod Security Standard allows.
func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	yes, no := true, false
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "main", Image: "example.com/x", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		}}}}
}
