// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// outageCommands are commands that run while the API server is killed and
// restarted. Those that wait keep waiting, and end when their condition holds;
// those that are connected with a container break.
var outageCommands = []struct {
	args   string
	begun  string // its output once it runs
	breaks bool
}{
	{"wait configmap/awaited --for=jsonpath={.data.done}=yes --timeout=280s -v=6", "watch=true", false},
	{"wait configmap/going --for=delete --timeout=280s -v=6", "watch=true", false},
	{"delete configmap going --timeout=280s -v=6", "watch=true", false},
	{"rollout status deployment/stuck --timeout=280s", "Waiting", false},
	{"logs -f solo --tail=1", "\n", true},
	{"exec solo -- sh -c echo${IFS}started;sleep${IFS}1000", "started", true},
	{"port-forward pod/solo :80", "Forwarding", true},
}

const awaited = `
apiVersion: v1
kind: Pod
metadata: {name: solo}
spec: {containers: [{name: solo, image: nginx}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: awaited}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: going, finalizers: [example.com/stay]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck}
spec:
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec: {containers: [{name: c, image: x}], nodeSelector: {there: none}}
`

// released changes the manifest so that the conditions hold.
var released = strings.NewReplacer(
	"name: awaited}", "name: awaited}\ndata: {done: \"yes\"}",
	", finalizers: [example.com/stay]", "",
	", nodeSelector: {there: none}", "",
).Replace(awaited)

var (
	// logged are the lines of kubectl's log, of which -v=6 makes many.
	logged  = regexp.MustCompile(`(?m)^[IWE]\d{4} .*\n`)
	failure = regexp.MustCompile(`(?m)^error: .*\n`)
	// lost matches the errors of a connection whose peer was killed: the kernel resets
	// it if the peer had not read all its input, and closes it otherwise. A balancer
	// that speaks HTTP/2 ends only the stream.
	lost = regexp.MustCompile(`read tcp \S+: read: connection reset by peer|(websocket: close 1006 \(abnormal closure\): )?unexpected EOF|` +
		`stream error: stream ID \d+; INTERNAL_ERROR; received from peer`)
)

// TestKubectlThroughOutage kills the API server under commands that wait or are
// connected. Each ends in the same way at the API server and at the gateway.
func TestKubectlThroughOutage(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quietOutage)
	type running struct {
		kubectl string
		ns      [2]string
		pair    [2]*background
	}
	var all []running
	var namespaces []string
	for name, command := range kubectls(t) {
		ns := [2]string{namespace(t, "-"+name+"-direct"), namespace(t, "-"+name+"-gateway")}
		namespaces = append(namespaces, ns[:]...)
		for _, ns := range ns {
			apply(t, awaited, ns)
			eventually(t, "a running Pod", func() bool {
				pod, err := api.CoreV1().Pods(ns).Get(t.Context(), "solo", metav1.GetOptions{})
				return err == nil && pod.Status.Phase == corev1.PodRunning
			})
		}
		for _, o := range outageCommands {
			r := running{kubectl: name, ns: ns}
			for _, at := range sides {
				r.pair[at] = startBackground(t, at, command, ns[at], strings.Fields(o.args)...)
			}
			all = append(all, r)
		}
	}
	for i, r := range all {
		for _, at := range sides {
			r.pair[at].prints(t, outageCommands[i%len(outageCommands)].begun)
		}
	}
	outages[quietOutage].Ready()
	outage(t, quietOutage, nil)
	for _, ns := range namespaces {
		apply(t, released, ns)
	}
	for i, r := range all {
		o := outageCommands[i%len(outageCommands)]
		var out [2]string
		for _, at := range sides {
			b := r.pair[at]
			eventually(t, "an end of "+o.args+" at "+at.String(), b.ended)
			out[at] = likened(logged.ReplaceAllString(b.out.String(), ""), r.ns[at])
			if o.breaks {
				// The output before the failure may differ.
				out[at] = strings.Join(failure.FindAllString(out[at], -1), "")
				out[at] = lost.ReplaceAllString(out[at], "(connection lost)")
			}
			out[at] += b.exit
		}
		broke := strings.HasPrefix(out[via], "error: ") && strings.Contains(out[via], "exit code 1")
		if out[via] != out[straight] || broke != o.breaks {
			t.Errorf("%s: kubectl %s (-direct +gateway)\n%s", r.kubectl, o.args, cmp.Diff(out[straight], out[via]))
		}
	}
	t.Logf("%d commands end the same", len(all))
}
