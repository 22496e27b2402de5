// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
	"github.com/watchkeeper/watchkeeper/internal/testing/freeport"
)

// A process is what the kubelet would make of a Pod: the container's program with its
// arguments, environment, user and mounts, as far as one machine allows.
type process struct {
	*clustertest.Gateway
	admin string // address of the admin listener
}

// enter makes the mounts of a container in a mount namespace of its own, and becomes its
// program: the root is read-only, the token is where client-go looks for it.
const enter = `set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
cp "$ACCOUNT"/* /run/secrets/kubernetes.io/serviceaccount/
mount -t tmpfs -o mode=755 tmpfs /mnt
cp "$PROGRAM" /mnt/watchkeeper
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /etc
for name in $VOLUMES; do
  mkdir -p "${name#*=}"
  mount --bind "${name%%=*}" "${name#*=}"
done
mount -o remount,bind,ro /
exec env -i "$@"
`

// addresses replaces what the arguments of a container say about its addresses, which on
// this machine are loopback's.
func addresses(t *testing.T, args []string) (changed []string, admin string) {
	t.Helper()
	port := func() string {
		port, err := freeport.Pick(10000, 10000)
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	admin = "127.0.0.1:" + port()
	replace := map[string]string{
		"--address=0.0.0.0":           "--address=127.0.0.1",
		"--port=8001":                 "--port=" + port(),
		"--admin-listen=0.0.0.0:8002": "--admin-listen=" + admin,
	}
	changed = slices.Clone(args)
	for i, arg := range changed {
		if to, ok := replace[arg]; ok {
			changed[i] = to
			delete(replace, arg)
		}
	}
	if len(replace) > 0 {
		t.Fatalf("the container's arguments %q lack %q", args, slices.Collect(maps.Keys(replace)))
	}
	return changed, admin
}

// run runs what the Pod would run. volumes are the folders of its volumes, by name. It ends
// with the test.
func run(t *testing.T, pod *corev1.Pod, volumes map[string]string) *process {
	t.Helper()
	p, err := try(t, pod, volumes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if code := p.Terminate(); code > 0 { // negative after a kill
			t.Errorf("the gateway of Pod %s ended with %d", pod.Name, code)
		}
		if t.Failed() {
			t.Logf("log of Pod %s:\n%s", pod.Name, p.Log())
		}
	})
	return p
}

// try is run for a program that may not serve.
func try(t *testing.T, pod *corev1.Pod, volumes map[string]string) (*process, error) {
	t.Helper()
	container := pod.Spec.Containers[0]
	args, admin := addresses(t, container.Args)
	account := account(t, pod.Namespace, pod.Spec.ServiceAccountName)
	mounts := map[string]string{} // folders, by the path in the container
	for _, m := range container.VolumeMounts {
		if folder, ok := volumes[m.Name]; ok {
			mounts[m.MountPath] = folder
		} else if m.MountPath != "/var/run/secrets/kubernetes.io/serviceaccount" {
			t.Fatalf("no folder for the volume %s", m.Name)
		}
	}
	command := outside
	if hasNamespaces() {
		command = inside
	}
	g, err := cluster.Run(command(t, account, mounts, *pod.Spec.SecurityContext.RunAsUser, environment(t, container), args))
	return &process{Gateway: g, admin: admin}, err
}

// inside returns a command that runs the program with the mounts of the container, as its
// user, without capabilities.
func inside(t *testing.T, account string, mounts map[string]string, user int64, env, args []string) *exec.Cmd {
	t.Helper()
	server, err := url.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	var volumes []string
	for path, folder := range mounts {
		volumes = append(volumes, folder+"="+path)
	}
	id := strconv.FormatInt(user, 10)
	line := slices.Concat([]string{"--mount", "sh", "-c", enter, "sh",
		"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()}, env,
		[]string{"/usr/bin/setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "/mnt/watchkeeper"},
		args)
	cmd := exec.Command("unshare", line...)
	cmd.Env = append(os.Environ(), "ACCOUNT="+account, "PROGRAM="+cluster.Program(), "VOLUMES="+strings.Join(volumes, " "))
	return cmd
}

// outside returns a command that runs the program on this machine, where it may not mount:
// paths of the container become folders, and a kubeconfig has the token.
func outside(t *testing.T, account string, mounts map[string]string, _ int64, env, args []string) *exec.Cmd {
	t.Helper()
	args = slices.Clone(args)
	for i := range args {
		for path, folder := range mounts {
			args[i] = strings.Replace(args[i], "="+path, "="+folder, 1)
		}
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: cluster.Config.Host, CertificateAuthority: filepath.Join(account, "ca.crt")}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(account, "token")}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(account, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(cluster.Program(), append(args, "--kubeconfig="+file)...)
	cmd.Env = env
	return cmd
}

// hasNamespaces reports whether this machine lets a test mount in its own namespace.
var hasNamespaces = sync.OnceValue(func() bool {
	out, err := exec.Command("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt").CombinedOutput()
	if err != nil {
		fmt.Printf("the programs run without the mounts of their containers: %v %s\n", err, out)
	}
	return err == nil
})

// environment returns the variables of a container.
func environment(t *testing.T, c corev1.Container) (all []string) {
	t.Helper()
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil {
			if e.ValueFrom.ResourceFieldRef == nil || e.ValueFrom.ResourceFieldRef.Resource != "limits.cpu" {
				t.Fatalf("the variable %s is from %v", e.Name, e.ValueFrom)
			}
			cpu := c.Resources.Limits[corev1.ResourceCPU]
			value = strconv.FormatInt(cpu.Value(), 10)
		}
		all = append(all, e.Name+"="+value)
	}
	return all
}

// account returns a folder with what a Pod has of its ServiceAccount: a token, and the CA of
// the API server, from the ConfigMap that the controller manager makes.
func account(t *testing.T, namespace, name string) string {
	t.Helper()
	dir := t.TempDir()
	token, err := cluster.Token(t.Context(), namespace, name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := api.CoreV1().ConfigMaps(namespace).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"token": token, "namespace": namespace, "ca.crt": ca.Data["ca.crt"]} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
