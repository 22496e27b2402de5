// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const convertedThings = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.convert.example.com}
spec:
  group: convert.example.com
  names: {plural: things, singular: thing, kind: Thing}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// TestUnreadable: a conversion webhook is set that does not answer. The API server then
// cannot read the objects in the version that is not stored: it ends watches, and answers
// lists with an error. So does the gateway, though it has the objects, and it serves the
// resource again when the webhook is away. The version that is stored is not concerned.
// It has its own cluster, in which such a definition keeps namespaces from ending.
func TestUnreadable(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	c := startOwn(t)
	c.apply(convertedThings)
	c.command("wait", "--for=condition=Established", "crd/things.convert.example.com")
	c.apply(`{apiVersion: convert.example.com/v1, kind: Thing, metadata: {name: a, namespace: default}}`)

	gateway := c.gateway("--data-dir", t.TempDir(), "--record", "*.convert.example.com")
	const stored, converted = "/apis/convert.example.com/v1/things", "/apis/convert.example.com/v2/things"
	for _, path := range []string{stored, converted} {
		cached(t, gateway, path+"?resourceVersion=0")
	}
	open := func(path string) <-chan frame {
		frames := curlWatch(t, gateway.URL+path+"?watch=1&resourceVersion=0&timeoutSeconds=600")
		next(t, frames, "ADDED", "a", nil)
		return frames
	}
	ends := open(converted)
	c.command("patch", "crd", "things.convert.example.com", "--type=merge", "-p",
		`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/"}}}}}`)
	eventually(t, "an error of the API server", func() bool {
		a, err := ask(t.Context(), c.client, c.up+converted+"?resourceVersion=0", "")
		return err == nil && a.code >= http.StatusBadRequest
	})
	untilEnd(t, ends)
	refused := func(when string) {
		t.Helper()
		if a, err := ask(t.Context(), http.DefaultClient, gateway.URL+converted+"?resourceVersion=0", ""); err != nil || a.code < http.StatusBadRequest {
			t.Errorf("%s: %v %+v, want the API server's error", when, err, a)
		}
	}
	refused("the watch has ended")
	// What is recorded of it ends, and no command tells that as an absence of changes.
	for command, want := range map[string]string{
		"changes things --since 20s": "nothing is known of changes of things.convert.example.com",
		"diff things --from 20s":     "things.convert.example.com: recorded until",
		"history thing/a":            "not recorded since: things.convert.example.com",
		"story thing/a --since 20s":  "nothing is known of that time",
		"get things --at now":        "conversion webhook",
	} {
		out, _ := c.Command(t.Context(), append(strings.Fields(command), "-n", "default", "--server", gateway.URL)...)
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: %s, want %s", command, out, want)
		}
	}
	gateway.Kill()
	if err := gateway.Restart(); err != nil {
		t.Fatal(err)
	}
	refused("what is recorded is not served as the present")
	stays := open(stored)
	c.apply(`{apiVersion: convert.example.com/v1, kind: Thing, metadata: {name: b, namespace: default}}`)
	next(t, stays, "ADDED", "b", nil)

	c.command("patch", "crd", "things.convert.example.com", "--type=merge", "-p", `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	eventually(t, "the objects in the version that is not stored", func() bool {
		code, body := get(t, http.DefaultClient, gateway.URL+converted+"?resourceVersion=0")
		return code == http.StatusOK && strings.Contains(body, `"name":"b"`)
	})
	cached(t, gateway, converted+"?resourceVersion=0")
}
