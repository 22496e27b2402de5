// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRecording: a Pod with a volume records all that it selects, with its own rights, and
// serves the past, also after a kill. Its claim is bound to a volume made by hand.
func TestRecording(t *testing.T) {
	t.Parallel()
	create := metav1.CreateOptions{}
	makeVolume(t, "history", "")
	namespace, _ := install(t, map[string]any{"replicas": 1,
		"recording": map[string]any{"enabled": true, "volume": map[string]any{"size": "1Gi", "storageClass": "-", "whenDeleted": "Delete"}}})
	eventually(t, "bound claim", func(ctx context.Context) error {
		claim, err := api.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, "history-"+name+"-0", metav1.GetOptions{})
		if err == nil && claim.Status.Phase != corev1.ClaimBound {
			err = errors.New(string(claim.Status.Phase))
		}
		return err
	})
	pod := pods(t, namespace, 1)[0]
	volume := t.TempDir()
	if err := os.Chown(volume, int(*pod.Spec.SecurityContext.RunAsUser), int(*pod.Spec.SecurityContext.FSGroup)); err != nil {
		t.Fatal(err)
	}
	p := run(t, &pod, map[string]string{"history": volume})
	recording := func(p *process) {
		t.Helper()
		eventually(t, "record of Services", func(context.Context) error { // each resource begins by itself
			if head := p.metric(t, `watchkeeper_history_head_rv{resource="services.v1"}`); p.metric(t, "watchkeeper_history_up") != "1" || head == "" || head == "0" {
				return errors.New(p.Log())
			}
			return nil
		})
	}
	recording(p)
	if got, want := p.metric(t, "watchkeeper_history_max_bytes"), "9.66367641e+08"; got != want {
		t.Errorf("the history may take %s bytes, want %s", got, want)
	}

	// A Service that is deleted is there in the past.
	services := api.CoreV1().Services(namespace)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "gone"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	made, err := services.Create(t.Context(), service, create)
	if err != nil {
		t.Fatal(err)
	}
	if err := services.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	admin, err := cluster.AdminToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own, err := cluster.Token(t.Context(), namespace, name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	past := func(p *process) {
		t.Helper()
		path := fmt.Sprintf("/at/rv:%s/api/v1/namespaces/%s/services/gone", made.ResourceVersion, namespace)
		c := client(t, namespace, p.URL, admin)
		eventually(t, "Service of the past", func(ctx context.Context) error {
			got, err := c.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
			if err == nil && !strings.Contains(string(got), string(made.UID)) {
				err = fmt.Errorf("another Service: %s", got)
			}
			return err
		})
		if _, err := c.CoreV1().Services(namespace).Get(t.Context(), "gone", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("in the present: %v", err)
		}
		// The past needs its own right, which the gateway's identity does not have.
		err := client(t, namespace, p.URL, own).CoreV1().RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
		if !apierrors.IsForbidden(err) {
			t.Errorf("without the right to the past: %v", err)
		}
	}
	past(p)
	p.Kill()
	again := run(t, &pod, map[string]string{"history": volume})
	recording(again)
	past(again)
	for _, line := range complaints(again.Log()) {
		if !strings.Contains(line, "the history was not closed") { // it was killed
			t.Errorf("log: %s", line)
		}
	}
}
