// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/watchkeeper/watchkeeper/localcluster/testcluster"
)

// TestNodes is the example of README.md: see TestReadme.
func TestNodes(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{Nodes: 3})
	config, err := clientcmd.RESTConfigFromKubeConfig(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 3 {
		t.Errorf("Nodes: %v, %v", nodes, err)
	}
}

// TestReadme: README.md has TestNodes as it is here.
func TestReadme(t *testing.T) {
	self, err := os.ReadFile("testcluster_test.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(self), "\nfunc TestNodes(")
	example, _, _ = strings.Cut(example, "\n}\n")
	if want := "```go\nfunc TestNodes(" + example + "\n}\n```"; !strings.Contains(string(readme), want) {
		t.Errorf("README.md lacks\n%s", want)
	}
}
