// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestNotUTF8: clients that read protobuf get the strings that protobuf clients have
// written, also those that JSON cannot carry, which would be lost if they were written
// back. An object with the character that JSON has in their place changes nothing.
func TestNotUTF8(t *testing.T) {
	inStage(t, quiet)
	mine, err := cluster.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Terminate()
	client, up := direct(t)
	config := rest.CopyConfig(cluster.Config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	binary, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	create := func(ns, text string) (rv string) {
		t.Helper()
		template, err := binary.CoreV1().PodTemplates(ns).Create(t.Context(), &corev1.PodTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"example.com/text": text}},
			Template:   corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the object in the cache", func() bool {
			code, _ := get(t, http.DefaultClient, mine.URL+"/api/v1/namespaces/"+ns+"/podtemplates/a?resourceVersion=0")
			return code == http.StatusOK
		})
		return template.ResourceVersion
	}
	const (
		bad    = "caf\xe9 \xff\xfe\xc3("
		whole  = "application/vnd.kubernetes.protobuf"
		asMeta = whole + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	)
	legitimate, hostile := namespace(t), namespace(t, "bytes")
	cached(t, mine, "/api/v1/podtemplates?resourceVersion=0")
	same := func(accept, path string) {
		t.Helper()
		if difference := compared(true, func() (string, error) {
			var want answer
			var wantErr error
			var wg sync.WaitGroup
			wg.Go(func() { want, wantErr = ask(t.Context(), client, up+path, accept) })
			got, err := ask(t.Context(), http.DefaultClient, mine.URL+path, accept)
			wg.Wait()
			if err = errors.Join(err, wantErr); err != nil || want == got && want.code == http.StatusOK && want.body != "" {
				return "", err
			}
			return fmt.Sprintf("%d %q, want %d %q", got.code, got.body, want.code, want.body), nil
		}); difference != "" {
			t.Errorf("%s as %s: %s", path, accept, difference)
		}
	}
	all := func(ns, rv string) {
		t.Helper()
		in := "/api/v1/namespaces/" + ns + "/podtemplates"
		for _, accept := range []string{whole, asMeta} {
			same(strings.Replace(accept, "Metadata;", "MetadataList;", 1), in+"?resourceVersionMatch=Exact&resourceVersion="+rv)
			same(accept, in+"/a?resourceVersion=0")
			same(accept, in+"?watch=1&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Da")
		}
	}
	before := servedLists(t, mine)
	rv := create(legitimate, "\ufffd")
	all(legitimate, rv)
	all(hostile, create(hostile, bad))
	all(legitimate, rv)
	if n := servedLists(t, mine) - before; n != 4 {
		t.Errorf("%d lists were served from the cache, want those without the object that JSON cannot carry: 4", n)
	}
}
