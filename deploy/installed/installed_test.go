// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package installed installs the chart into a control plane, with the Helm library, and
// runs next to it what the Pods would run.
package installed

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const (
	chartDir = "../chart/watchkeeper"
	name     = "watchkeeper" // of the release, and of its objects
	built    = "../../bin/watchkeeper"
	runImage = "watchkeeper-run" // with which localcluster runs the program of a Pod
)

var (
	cluster *clustertest.Cluster
	api     kubernetes.Interface
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		program, err := filepath.Abs(built)
		if err == nil {
			_, err = os.Stat(program)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%v: run 'make build' first\n", err)
			return 1
		}
		if cluster, err = clustertest.Start(3, "--run", runImage+"="+program); err == nil {
			defer cluster.Close()
			err = cluster.Build()
		}
		if err == nil {
			api, err = kubernetes.NewForConfig(cluster.Config)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// install installs the chart in its own namespace, which allows only what the Pod
// Security Standard "restricted" does, and returns the namespace.
func install(t *testing.T, values map[string]any) (namespace string, r *release.Release) {
	t.Helper()
	namespace, config, chart := prepare(t)
	i := action.NewInstall(config)
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.Timeout = name, namespace, kube.HookOnlyStrategy, time.Minute
	installed, err := i.RunWithContext(t.Context(), chart, values)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u := action.NewUninstall(config)
		u.WaitStrategy = kube.HookOnlyStrategy
		if _, err := u.Run(name); err != nil {
			t.Error(err)
		}
	})
	return namespace, installed.(*release.Release)
}

// upgrade upgrades what install has installed.
func upgrade(t *testing.T, values map[string]any) {
	t.Helper()
	namespace, config, chart := prepare(t)
	u := action.NewUpgrade(config)
	u.Namespace, u.WaitStrategy, u.Timeout = namespace, kube.HookOnlyStrategy, time.Minute
	if _, err := u.RunWithContext(t.Context(), name, chart, values); err != nil {
		t.Fatal(err)
	}
}

// prepare returns what Helm's actions need, and makes the namespace of the test if there is
// none yet.
func prepare(t *testing.T) (namespace string, config *action.Configuration, chart *chart.Chart) {
	t.Helper()
	namespace = strings.ToLower(t.Name())
	labels := map[string]string{}
	for _, mode := range []string{"enforce", "warn", "audit"} {
		labels["pod-security.kubernetes.io/"+mode] = "restricted"
	}
	_, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	kubeconfig := cluster.Kubeconfig()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config = action.NewConfiguration()
	if err := config.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	chart, err = loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return namespace, config, chart
}

// makeVolume makes a volume by hand, as there is no provisioner, of a class; "" for none.
func makeVolume(t *testing.T, name, class string) {
	t.Helper()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/history"}},
	}}
	if _, err := api.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pods returns the Pods of the release, when there are n of them.
func pods(t *testing.T, namespace string, n int) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	eventually(t, fmt.Sprintf("%d Pods", n), func(ctx context.Context) error {
		list, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=watchkeeper"})
		if err != nil {
			return err
		}
		if pods = list.Items; len(pods) != n {
			return fmt.Errorf("%d Pods", len(pods))
		}
		return nil
	})
	return pods
}

// eventually waits until check returns nil.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := check(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s: %v", what, err)
		}
	}
}

// client returns a client for a gateway, as a Pod has it that mounts the ConfigMap with the
// kubeconfig, with a token.
func client(t *testing.T, namespace, url, token string) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(clientConfig(t, namespace, url, token))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// clientConfig is the configuration of client.
func clientConfig(t *testing.T, namespace, url, token string) *rest.Config {
	t.Helper()
	dir := t.TempDir()
	eventually(t, "CA in the ConfigMap", func(ctx context.Context) error {
		m, err := api.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for file, content := range m.Data {
			content = strings.NewReplacer("https://"+name+"."+namespace+".svc", url, "/var/run/secrets/kubernetes.io/serviceaccount/", "").Replace(content)
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				return err
			}
		}
		if m.Data["ca.crt"] == "" {
			return fmt.Errorf("it has %d data", len(m.Data))
		}
		return nil
	})
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// TestInstall: the default values. All objects are admitted, the Pods' programs run with
// their own rights and no other, and clients are served from the cache.
func TestInstall(t *testing.T) {
	t.Parallel()
	namespace, r := install(t, nil)
	if !strings.Contains(r.Info.Notes, "rollout status deployment/watchkeeper") {
		t.Errorf("notes: %s", r.Info.Notes)
	}
	admin, err := cluster.AdminToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own, err := cluster.Token(t.Context(), namespace, name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods(t, namespace, 2) {
		p := run(t, &pod, nil)
		for _, token := range []string{admin, own} {
			list, err := client(t, namespace, p.URL, token).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
			if err != nil || len(list.Items) != 2 {
				t.Errorf("Pods through %s: %v", p.URL, err)
			}
		}
		if _, err := client(t, namespace, p.URL, own).CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("the gateway's identity may list Secrets")
		}
		for _, line := range complaints(p.Log()) {
			t.Errorf("log: %s", line)
		}
		if _, err := p.get(t, "/livez"); err != nil {
			t.Error(err)
		}
		followed(t, clientConfig(t, namespace, p.URL, admin), namespace)
	}
	// The API server has its own queue for the gateways' requests.
	metrics, err := api.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if want := `apiserver_flowcontrol_dispatched_requests_total{flow_schema="` + namespace + "-" + name + `"`; err != nil || !bytes.Contains(metrics, []byte(want)) {
		t.Errorf("no %s: %v", want, err)
	}
	// An upgrade leaves what the gateways have written.
	data := func() (secret map[string][]byte, ca string) {
		t.Helper()
		s, err := api.CoreV1().Secrets(namespace).Get(t.Context(), name+"-tls", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := api.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Data, m.Data["ca.crt"]
	}
	secret, ca := data()
	upgrade(t, map[string]any{"replicas": 3, "service": map[string]any{"annotations": map[string]any{"example.com/a": "b"}}})
	pods(t, namespace, 3)
	if after, afterCA := data(); len(secret) != 4 || !maps.EqualFunc(secret, after, bytes.Equal) || ca == "" || ca != afterCA {
		t.Errorf("%d data of the Secret before, %d after; the CA %q, and %q", len(secret), len(after), ca, afterCA)
	}
	if out, err := cluster.Kubectl(t.Context(), "-n", namespace, "rollout", "status", "deployment/watchkeeper", "--timeout=60s").CombinedOutput(); err != nil {
		t.Errorf("rollout status: %v %s", err, out)
	}
}
