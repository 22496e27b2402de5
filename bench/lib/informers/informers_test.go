// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
)

// The informer's process is this program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "informer") {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestPods(t *testing.T) {
	api := fakeapi.New(fakeapi.Options{Population: fakeapi.Population{Pods: 30, Formats: []fakeapi.Format{fakeapi.JSON, fakeapi.Protobuf}}})
	s := httptest.NewServer(api)
	defer s.Close()
	p, err := StartSelf(Order{Host: s.URL, Resource: Pods}, "informer")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	if p.Synced.Objects != 30 || p.Synced.Seconds <= 0 {
		t.Errorf("%+v", p.Synced)
	}
}

// An order that cannot be followed is an error, not a wait.
func TestRefused(t *testing.T) {
	if p, err := StartSelf(Order{Host: "http://127.0.0.1:1", Resource: "nothing"}, "informer"); err == nil {
		p.Stop()
		t.Error("a resource that is not known is no error")
	}
}

// The time of an update ends when the handler has that update, not an earlier one.
func TestUpdate(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "settings"}}
	client := fake.NewClientset(settings)
	watching := make(chan struct{})
	client.PrependWatchReactor("configmaps", func(a clienttesting.Action) (bool, watch.Interface, error) {
		w, err := client.Tracker().Watch(a.GetResource(), a.GetNamespace())
		close(watching)
		return true, w, err
	})
	i := &informer{client: client, arrived: make(chan string, 1)}
	if s, err := i.run(t.Context(), ConfigMaps); err != nil || s.Objects != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	<-watching // the fake API server does not send what changed between LIST and WATCH
	i.arrived <- "an earlier one"
	lags, err := i.update(t.Context(), Command{Namespace: "ns", Name: "settings", Updates: 3, Data: map[string]string{"a": "b"}})
	if err != nil || len(lags) != 3 || slices.Min(lags) <= 0 {
		t.Errorf("%v, %v", lags, err)
	}
	now, err := i.client.CoreV1().ConfigMaps("ns").Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil || now.Data["a"] != "b" || now.Data[mark] == "" {
		t.Errorf("%v, %v", now, err)
	}
	if _, err := i.update(t.Context(), Command{Namespace: "ns", Name: "nothing", Updates: 1}); err == nil {
		t.Error("an update that fails is no error")
	}
}
