// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/logtest"
)

// renew calls renewed and returns its data and reason.
func renew(t testing.TB, data map[string][]byte, names []string) (map[string][]byte, string) {
	t.Helper()
	next, reason, err := renewed(data, names)
	if err != nil {
		t.Fatal(err)
	}
	return next, reason
}

// verify fails if a client that trusts ca would not accept the certificate of data.
func verify(t testing.TB, data map[string][]byte, ca []byte, names []string) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(data[certFile], data[keyFile])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for _, name := range names {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return pair.Leaf
}

func TestSecretIsMadeOnce(t *testing.T) {
	data, reason := renew(t, nil, testNames)
	if reason != "there is no certificate" || len(data) != 4 {
		t.Errorf("%q, %d data", reason, len(data))
	}
	leaf := verify(t, data, data[caFile], testNames)
	if leaf.VerifyHostname("other.example.com") == nil {
		t.Error("valid for a name that was not given")
	}
	if again, reason := renew(t, data, testNames); reason != "" || !equalFiles(again, data) {
		t.Errorf("made again: %s", reason)
	}
	// Data of others in the same Secret do not matter.
	more := maps.Clone(data)
	more["other"] = []byte("x")
	if _, reason := renew(t, more, testNames); reason != "" {
		t.Errorf("made again: %s", reason)
	}
}

// A renewed certificate is one of the same CA, so that clients need not change.
func TestSecretIsRenewed(t *testing.T) {
	start := time.Now()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(start))
		first, _ := renew(t, nil, testNames)
		time.Sleep(leafValidity - minValidity - time.Minute)
		if _, reason := renew(t, first, testNames); reason != "" {
			t.Errorf("renewed too early: %s", reason)
		}
		time.Sleep(2 * time.Minute)
		second, reason := renew(t, first, testNames)
		if !strings.Contains(reason, "valid only until") {
			t.Errorf("reason %q", reason)
		}
		if !bytes.Equal(first[caFile], second[caFile]) || !bytes.Equal(first[caKeyFile], second[caKeyFile]) {
			t.Error("another CA")
		}
		verify(t, second, first[caFile], testNames)

		// A CA is followed by another one, and stays in ca.crt. Its certificate is served for
		// another day, for clients whose copy of ca.crt is older.
		time.Sleep(9*365*24*time.Hour - 30*24*time.Hour)
		last, _ := renew(t, second, testNames)
		time.Sleep(35 * 24 * time.Hour)
		third, reason := renew(t, last, testNames)
		if !strings.Contains(reason, "the CA is valid only until") {
			t.Errorf("reason %q", reason)
		}
		verify(t, third, third[caFile], testNames)
		verify(t, third, first[caFile], testNames)
		if !bytes.HasSuffix(third[caFile], first[caFile]) || bytes.Equal(third[caKeyFile], first[caKeyFile]) {
			t.Error("the previous CA is gone, or its key remains")
		}
		if _, reason := renew(t, third, testNames); reason != "" {
			t.Errorf("made again: %s", reason)
		}
		time.Sleep(caOverlap)
		fourth, reason := renew(t, third, testNames)
		if reason != "tls.crt is not signed by the CA" || !bytes.Equal(fourth[caFile], third[caFile]) {
			t.Errorf("reason %q", reason)
		}
		verify(t, fourth, third[caFile], testNames)
		if _, reason := renew(t, fourth, testNames); reason != "" {
			t.Errorf("made again: %s", reason)
		}
	})
}

func TestSecretOfDamagedCertificate(t *testing.T) {
	good, _ := renew(t, nil, testNames)
	other, _ := renew(t, nil, testNames)
	for name, change := range map[string]map[string][]byte{
		"no certificate":              {certFile: nil},
		"no key":                      {keyFile: nil},
		"half a certificate":          {certFile: good[certFile][:len(good[certFile])/4]},
		"the key of another":          {keyFile: other[keyFile]},
		"a certificate of another":    {certFile: other[certFile]},
		"a certificate of another CA": {certFile: other[certFile], keyFile: other[keyFile]},
	} {
		data := maps.Clone(good)
		maps.Copy(data, change)
		next, reason := renew(t, data, testNames)
		if reason == "" || !bytes.Equal(next[caFile], good[caFile]) {
			t.Errorf("%s: reason %q", name, reason)
		}
		verify(t, next, good[caFile], testNames)
	}
	more, reason := renew(t, good, []string{"added.example.com"})
	if reason != "the certificate is not for added.example.com" {
		t.Errorf("reason %q", reason)
	}
	verify(t, more, good[caFile], append(slices.Clone(testNames), "added.example.com"))
}

// Data that the gateway did not write are not replaced.
func TestSecretOfOthers(t *testing.T) {
	ours, _ := renew(t, nil, testNames)
	other, _ := renew(t, nil, testNames)
	for name, data := range map[string]map[string][]byte{
		"cert-manager's":     {caFile: ours[caFile], certFile: ours[certFile], keyFile: ours[keyFile]},
		"a certificate":      {certFile: ours[certFile], keyFile: ours[keyFile]},
		"the CA of another":  {caFile: other[caFile], caKeyFile: ours[caKeyFile], certFile: ours[certFile], keyFile: ours[keyFile]},
		"half a CA":          {caFile: ours[caFile][:40], caKeyFile: ours[caKeyFile]},
		"a CA without PEM":   {caFile: []byte("x"), caKeyFile: []byte("y")},
		"a key that is none": {caFile: ours[caFile], caKeyFile: ours[certFile]},
	} {
		next, _, err := renewed(data, testNames)
		if !errors.Is(err, errForeign) || next != nil || !strings.Contains(err.Error(), "use --tls-cert-file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var (
	testRef     = types.NamespacedName{Namespace: "monitoring", Name: "watchkeeper-tls"}
	secretsKind = schema.GroupResource{Resource: "secrets"}
)

// failing returns a client whose requests with a verb fail, one after the other.
func failing(verb string, errs ...error) *fake.Clientset {
	api := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testRef.Namespace, Name: testRef.Name}})
	api.PrependReactor(verb, "secrets", func(ktesting.Action) (bool, runtime.Object, error) {
		if len(errs) == 0 {
			return false, nil, nil
		}
		err := errs[0]
		errs = errs[1:]
		return true, nil, err
	})
	return api
}

// The gateway waits for an API server that does not answer, and repeats what another
// replica has preceded. It gives up where waiting does not help.
func TestOpenSecret(t *testing.T) {
	conflict := apierrors.NewConflict(secretsKind, testRef.Name, errors.New("modified"))
	forbidden := apierrors.NewForbidden(secretsKind, testRef.Name, errors.New("not allowed"))
	for _, c := range []struct {
		name, verb string
		errs       []error
		want       string // in the error; empty: none
	}{
		{name: "at once"},
		{"unreachable", "get", []error{errors.New("connection refused"), context.DeadlineExceeded}, ""},
		{"refused while the API server starts", "get", []error{forbidden, forbidden}, ""},
		{"starting", "get", []error{apierrors.NewServiceUnavailable("starting"), apierrors.NewUnauthorized("not yet"), apierrors.NewTooManyRequests("busy", 1)}, ""},
		{"preceded", "update", []error{conflict, conflict}, ""},
		{"often preceded", "update", slices.Repeat([]error{conflict}, maxConflicts+3), ""},
		{"not allowed to read", "get", slices.Repeat([]error{forbidden}, 20), "needs get and update on it"},
		{"not allowed to write", "update", slices.Repeat([]error{forbidden}, 20), "needs get and update on it"},
		{"missing", "get", []error{apierrors.NewNotFound(secretsKind, testRef.Name)}, ""}, // and then it exists
	} {
		synctest.Test(t, func(t *testing.T) {
			api := failing(c.verb, c.errs...)
			s, err := OpenSecret(t.Context(), api.CoreV1(), testRef, testNames, slog.New(slog.DiscardHandler))
			if c.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), "--cert-secret monitoring/watchkeeper-tls: ") || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v", c.name, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			secret, err := api.CoreV1().Secrets(testRef.Namespace).Get(t.Context(), testRef.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			cert, _ := s.Certificate(nil)
			if leaf := verify(t, secret.Data, secret.Data[caFile], testNames); !leaf.Equal(cert.Leaf) {
				t.Errorf("%s: serves another certificate than that of the Secret", c.name)
			}
		})
	}

	// Without the right to create it, the error says what to do.
	api := fake.NewClientset()
	api.PrependReactor("create", "secrets", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
	synctest.Test(t, func(t *testing.T) {
		if _, err := OpenSecret(t.Context(), api.CoreV1(), testRef, testNames, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "create an empty Secret") {
			t.Error(err)
		}
	})
	// Waiting ends with the context.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenSecret(ctx, failing("get", errors.New("connection refused")).CoreV1(), testRef, testNames, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

// A replica takes over what another one has written, and keeps its certificate while the
// Secret cannot be read.
func TestSecretFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := failing("get")
		var away atomic.Bool
		api.PrependReactor("get", "secrets", func(ktesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("connection refused")
		})
		var out logtest.Log
		s, err := OpenSecret(t.Context(), api.CoreV1(), testRef, testNames, slog.New(slog.NewTextHandler(&out, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx, s.log.Error); close(done) }()
		defer func() { cancel(); <-done }()

		wider := append(slices.Clone(testNames), "more.example.com")
		if _, err := OpenSecret(t.Context(), api.CoreV1(), testRef, wider, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(secretInterval + time.Second)
		if cert, _ := s.Certificate(nil); cert.Leaf.VerifyHostname("more.example.com") != nil {
			t.Error("does not serve the other replica's certificate")
		}
		away.Store(true)
		time.Sleep(secretInterval)
		if cert, _ := s.Certificate(nil); cert.Leaf.VerifyHostname("more.example.com") != nil {
			t.Error("lost its certificate")
		}
		cancel()
		<-done
		if log := out.Take(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "connection refused") || strings.Contains(log, "PRIVATE") {
			t.Errorf("log %s", log)
		}
	})
}

// The CA stays in a ConfigMap, besides what others have put there.
func TestPublishCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref := types.NamespacedName{Namespace: "monitoring", Name: "watchkeeper"}
		api := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}, Data: map[string]string{"kubeconfig": "k"}})
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, ref.Name, errors.New("no"))
		missing := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, ref.Name)
		var patch, create atomic.Pointer[apierrors.StatusError] // the errors of these verbs
		for verb, err := range map[string]*atomic.Pointer[apierrors.StatusError]{"patch": &patch, "create": &create} {
			api.PrependReactor(verb, "configmaps", func(ktesting.Action) (bool, runtime.Object, error) {
				if err := err.Load(); err != nil {
					return true, nil, err
				}
				return false, nil, nil
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ca atomic.Value
		ca.Store("first")
		var out logtest.Log
		done := make(chan struct{})
		go func() {
			PublishCA(ctx, api.CoreV1(), ref, func() ([]byte, error) { return []byte(ca.Load().(string)), nil }, slog.New(slog.NewTextHandler(&out, nil)).Error)
			close(done)
		}()
		check := func(want map[string]string) {
			t.Helper()
			synctest.Wait()
			got, err := api.CoreV1().ConfigMaps(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
			if err != nil || !maps.Equal(got.Data, want) {
				t.Errorf("data %v, %v", got.Data, err)
			}
		}
		check(map[string]string{"kubeconfig": "k", "ca.crt": "first"})
		ca.Store("second")
		time.Sleep(publishInterval)
		check(map[string]string{"kubeconfig": "k", "ca.crt": "second"})
		if err := api.CoreV1().ConfigMaps(ref.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(publishInterval)
		check(map[string]string{"ca.crt": "second"})
		if log := out.Take(); log != "" {
			t.Errorf("log %s", log)
		}
		patch.Store(forbidden)
		time.Sleep(publishInterval)
		synctest.Wait()
		if log := out.Take(); !strings.Contains(log, "needs patch on it") {
			t.Errorf("log %s", log)
		}
		patch.Store(missing)
		create.Store(forbidden)
		time.Sleep(publishInterval)
		synctest.Wait()
		if log := out.Take(); !strings.Contains(log, "create the ConfigMap") {
			t.Errorf("log %s", log)
		}
		cancel()
		<-done
	})
}

func TestSharedNames(t *testing.T) {
	names, err := SharedNames([]string{"watchkeeper.monitoring.svc"})
	if want := []string{"127.0.0.1", "::1", "localhost", "watchkeeper.monitoring.svc"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := SharedNames([]string{"https://x"}); err == nil {
		t.Error(fmt.Sprint(names))
	}
}
