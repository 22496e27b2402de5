// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

var (
	cluster *clustertest.Cluster
	// gw is the gateway shared by tests that do not disturb it.
	gw *clustertest.Gateway
	// www is the folder that gw serves at /static/.
	www string
	// api is a client of the API server.
	api kubernetes.Interface
	// issuer issues tokens that the API server accepts.
	issuer *clustertest.Issuer
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		// Tests of a stage wait for each other: all of them have to run.
		err := flag.Set("test.parallel", "64")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if minor, err = clustertest.Minor(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if issuer, err = clustertest.StartIssuer(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer issuer.Close()
		structured, err := os.CreateTemp("", "watchkeeper-test-authentication-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		structured.Close()
		defer os.Remove(structured.Name())
		if err = issuer.WriteConfig(structured.Name()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if cluster, err = clustertest.Start(3, "--runtime-config", "api/all=true", "--feature-gates", betaGates(),
			"--apiserver-arg", "authentication-config="+structured.Name()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer cluster.Close()
		for s := range outages {
			outages[s] = cluster.Outages()
		}
		if api, err = kubernetes.NewForConfig(cluster.Config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if www, err = os.MkdirTemp(cluster.Dir, "www-"); err == nil {
			err = os.WriteFile(filepath.Join(www, "hello.txt"), []byte("hello from a folder\n"), 0o644)
		}
		if err == nil {
			gw, err = cluster.Gateway("--www", www)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if exit := gw.Terminate(); exit != 0 {
			fmt.Fprintf(os.Stderr, "watchkeeper ended with %d on SIGTERM:\n%s", exit, gw.Log())
			return 1
		}
		return code
	}())
}

// A stage is a group of tests that mostly wait and therefore run in parallel. No
// test changes what another test of its stage compares, and none relies on
// metrics that the others share. The first stage begins when all tests
// without a stage have ended, each later one when the earlier stages have ended.
type stage int

const (
	quiet         stage = iota // nothing disturbs the API server
	underLoad                  // Pods change all the time
	loadedOutages              // Pods change, and the API server is killed repeatedly
	quietOutage                // the API server is killed once
	stages
)

var (
	// running counts the tests of each stage that have not ended.
	running [stages]sync.WaitGroup
	// outages are the kills of the API server that the tests of a stage share.
	outages [stages]*clustertest.Outages
	// quietTests bounds how many tests of stage quiet run at once: more would only
	// slow each other down. The longest start at once: they determine how long the
	// stage lasts.
	quietTests = make(chan struct{}, 7)
	longest    = map[string]bool{"TestKubectlSession": true, "TestAggregated": true, "TestUpgrade": true}
)

// inStage waits until the test's stage has begun.
func inStage(t *testing.T, s stage) {
	t.Helper()
	running[s].Add(1)
	t.Cleanup(running[s].Done)
	if s >= loadedOutages {
		outages[s].Join(t)
	}
	t.Parallel()
	for before := range s {
		running[before].Wait()
	}
	if s == quiet && !longest[t.Name()] {
		quietTests <- struct{}{}
		t.Cleanup(func() { <-quietTests })
	}
}

// outage waits until the API server was killed and is back. While it is down, away
// is called, unless it is nil.
func outage(t *testing.T, s stage, away func()) {
	t.Helper()
	if err := outages[s].Next(away); err != nil {
		t.Fatal(err)
	}
}

// curl runs the real curl and returns what it printed.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "curl", append([]string{"-sS", "-g"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("curl %v: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

// ownKubectl names localcluster's kubectl.
const ownKubectl = "localcluster"

// kubectls are the commands under test: localcluster's kubectl, and but in make test the
// machine's if it has another minor version.
func kubectls(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{ownKubectl: cluster.Kubectl(t.Context()).Args}
	if path := otherKubectl(); path != "" && !testing.Short() {
		all["path"] = []string{path}
	}
	return all
}

var minorVersion = regexp.MustCompile(`Client Version: v\d+\.\d+`)

// otherKubectl returns the path of the machine's kubectl, "" if it has none or its
// minor version is localcluster's.
var otherKubectl = sync.OnceValue(func() string {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		return ""
	}
	version := func(command ...string) string {
		out, _ := exec.Command(command[0], append(command[1:], "version", "--client")...).Output() // without an output the version differs
		return minorVersion.FindString(string(out))
	}
	if version(path) == version(cluster.Kubectl(context.Background()).Args...) {
		return ""
	}
	return path
})

// noGC turns off garbage collection in short-lived kubectl processes.
const noGC = "GOGC=off"

// run runs a command and returns its output and whether it succeeded.
func run(t *testing.T, command []string, args ...string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(append([]string{}, command[1:]...), args...)...)
	cmd.Env = append(os.Environ(), noGC)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s %v does not end: %s", command[0], args, out)
	}
	return string(out), err == nil
}

// kubectl runs localcluster's kubectl against the API server itself; it has to
// succeed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, ok := run(t, cluster.Kubectl(t.Context()).Args, args...)
	if !ok {
		t.Fatalf("kubectl %v: %s", args, out)
	}
	return out
}

// namespace makes a namespace for the test, and deletes it afterwards. A test
// that needs several gives each a suffix.
func namespace(t *testing.T, suffix ...string) string {
	t.Helper()
	name := "t-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + strings.Join(suffix, "")
	if _, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}) // the cluster is deleted afterwards anyway
	})
	eventually(t, "a default service account", func() bool {
		_, err := api.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return name
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting for %s\n%s", what, gw.Log())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// An answer is the response to a GET.
type answer struct {
	code        int
	contentType string
	body        string
}

// ask sends a GET with Go's client, without curl's pretty printing. An empty
// accept sends no Accept header.
func ask(ctx context.Context, client *http.Client, url, accept string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(body)}, err
}

// get is ask for a request that must not fail.
func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	a, err := ask(t.Context(), client, url, "")
	if err != nil {
		t.Fatal(err)
	}
	return a.code, a.body
}

// apiServers returns the URL of each API server.
func apiServers(t *testing.T) []string {
	t.Helper()
	urls, err := cluster.APIServers()
	if err != nil {
		t.Fatal(err)
	}
	return urls
}

// direct returns a client and the URL of the API server, or of the balancer if there are
// several.
func direct(t *testing.T) (*http.Client, string) {
	t.Helper()
	client, url, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	return client, url
}
