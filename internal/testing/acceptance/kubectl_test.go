// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// A side is the server that a kubectl uses.
type side int

const (
	straight side = iota // at the API server
	via                  // at the gateway
)

var sides = []side{straight, via}

func (s side) String() string { return [...]string{"direct", "gateway"}[s] }

// to adds the server and the namespace to a kubectl command.
func (s side) to(kubectl []string, ns string) []string {
	if s == via {
		return append(kubectl[:len(kubectl):len(kubectl)], "-s", gw.URL, "-n", ns)
	}
	return append(kubectl[:len(kubectl):len(kubectl)], "--kubeconfig", cluster.Kubeconfig(), "-n", ns)
}

// start prepares a kubectl command to run in a folder. Its discovery cache is in
// the cluster's folder, not in the user's home.
func (s side) start(ctx context.Context, kubectl []string, ns, dir string, args ...string) *exec.Cmd {
	command := s.to(kubectl, ns)
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+cluster.Dir+"/kubectl-cache")
	return cmd
}

// both runs a kubectl at both sides at once, each in its namespace, and returns
// their output, without what always differs, and their exit codes.
func both(t *testing.T, kubectl []string, ns [2]string, dir string, env []string, args ...string) (out [2]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for _, at := range sides {
		wg.Go(func() {
			cmd := at.start(ctx, kubectl, ns[at], dir, args...)
			cmd.Env = append(append(cmd.Env, noGC), env...)
			text, err := cmd.CombinedOutput()
			out[at] = likened(string(text), ns[at]) + exit(err)
			if ctx.Err() != nil {
				out[at] = fmt.Sprintf("%s at %s does not end: %s", args, at, text)
			}
		})
	}
	wg.Wait()
	return out
}

func exit(err error) string {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Sprintf("exit code %d\n", failed.ExitCode())
	} else if err != nil {
		return err.Error()
	}
	return ""
}

// varying is the output that differs between two namespaces or two moments.
var varying = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`(?i)(resource ?version"?: *"?)\d+`), "${1}RV"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4}|Z)?`), "TIME"},
	{regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}`), "TIME"},
	{regexp.MustCompile(`(?m)^.*Unknown stream id \d, discarding message\n`), ""}, // kubectl's, now and then, when exec ends
	{regexp.MustCompile(`(?m)^([IWEF])\d{4} \S+ +\d+ `), "$1 "},                   // a line of a log
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "IP"},
	{regexp.MustCompile(`\b(\d+[smhd])+\b|<invalid>`), "AGE"},
	{regexp.MustCompile(`\b(LIVE|MERGED)-\d+`), "$1"},
	{regexp.MustCompile(`\b(web-[0-9a-f]{6,10})-[0-9a-z]{5}\b`), "$1-ID"},
	{regexp.MustCompile(`(?m)^Waiting for deployment .*\n`), ""},
	// The repair loop of the API server may see a new Service before its address is noted.
	{regexp.MustCompile(`(?m)^Events:\n.*\n.*\n.* ClusterIPNotAllocated .*\n`), "Events: <none>\n"},
	{regexp.MustCompile(`(?m)^.* ClusterIPNotAllocated .*\n`), ""},
	{regexp.MustCompile(` +|-{5,}`), " "}, // the width of a column depends on its values
}

// likened replaces what varies by fixed text.
func likened(text, ns string) string {
	text = strings.ReplaceAll(text, ns, "NS")
	for _, v := range varying {
		text = v.what.ReplaceAllString(text, v.by)
	}
	return text
}

// manifests writes the files that the commands below use.
func manifests(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"first.yaml":  first,
		"second.yaml": strings.NewReplacer("green", "blue", "image: one", "image: two", "port: 80", "port: 81").Replace(first),
		"server.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red, by: server}}",
		"pair.yaml":   pruned("left") + "---" + pruned("right"),
		"left.yaml":   pruned("left"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const first = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {color: green}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: one}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

func pruned(name string) string {
	return "\n{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", labels: {prune: please}}}\n"
}

// session is a typical kubectl session in a namespace. No argument contains a
// space.
const session = `
apply -f first.yaml
apply -f first.yaml
get configmap/settings -o jsonpath={.data}
diff -f second.yaml
apply -f second.yaml
diff -f second.yaml
apply --server-side -f server.yaml
apply --server-side --force-conflicts -f server.yaml
create --dry-run=server -f pair.yaml
create -f first.yaml
replace -f second.yaml
rollout status deployment/web --timeout=150s
patch configmap settings --type=merge -p {"data":{"patched":"merge"}}
patch configmap settings --type=json -p [{"op":"remove","path":"/data/patched"}]
patch configmap settings --type=json -p [{"op":"test","path":"/data/patched","value":"x"}]
patch deployment web -p {"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}
edit configmap settings
edit configmap settings
label configmap settings shade=dark
label configmap settings shade=light
label configmap settings shade=light --overwrite
annotate deployment web note=x
set image deployment/web c=three
set env deployment/web A=B
rollout status deployment/web --timeout=150s
rollout undo deployment/web
rollout pause deployment/web
rollout resume deployment/web
rollout restart deployment/web
rollout status deployment/web --timeout=150s
scale deployment/web --replicas=3
scale deployment/web --current-replicas=1 --replicas=2
expose deployment web --name=exposed --port=82
create configmap made --from-literal=a=b
create configmap made --from-literal=a=b
create secret generic hidden --from-literal=p=w
create role reader --verb=get --resource=pods
run solo --image=nginx --labels=a=b
wait pod/solo --for=condition=Ready --timeout=150s
wait pod/solo --for=jsonpath={.status.phase}=Running
wait pod/solo --for=condition=Nothing --timeout=1s
exec solo -- echo hi
exec solo -- nothing
get pods --as=nobody
get pod solo -o name --as=nobody --as-group=system:masters
auth can-i get pods --as=nobody
auth whoami --as=nobody
delete pod solo --timeout=150s
wait pod/solo --for=delete --timeout=150s
delete pod solo
apply --prune -l prune=please -f pair.yaml
apply --prune -l prune=please -f left.yaml
delete configmap made --dry-run=server
delete secret -l nothing=here
get configmap,service,role -o yaml --show-managed-fields
get deployment web -o jsonpath={.spec}
delete -f second.yaml --timeout=150s
wait deployment/web --for=delete --timeout=150s
delete configmaps --all
`

// editor is the editor of kubectl edit: the first edit changes the object, the
// second does not.
const editor = "KUBE_EDITOR=sed -i s/red/pink/"

// commandsFor returns the commands to run with a kubectl: with localcluster's so many of each
// kind, and the first of each kind with another, which mostly sends the same requests.
func commandsFor(kubectl, all string, most int) (commands []string) {
	if kubectl != ownKubectl {
		most = 1
	}
	seen := map[string]int{}
	for line := range strings.Lines(strings.TrimSpace(all)) {
		kind := strings.Fields(line)[0]
		if seen[kind]++; seen[kind] <= most {
			commands = append(commands, line)
		}
	}
	return commands
}

// TestKubectlSession runs the session in two namespaces, at the API server and
// through the gateway. Each command prints the same, and the resulting objects are
// equal.
func TestKubectlSession(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	for name, command := range kubectls(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := [2]string{namespace(t, "-direct"), namespace(t, "-gateway")}
			dir := manifests(t)
			for _, line := range commandsFor(name, session, len(session)) {
				out := both(t, command, ns, dir, []string{editor}, strings.Fields(line)...)
				if out[via] != out[straight] {
					t.Errorf("kubectl %s(-direct +gateway)\n%s", line, cmp.Diff(out[straight], out[via]))
				}
			}
		})
	}
}

// reads are commands that only read, besides those of TestA3Kubectl. make test runs four of each
// kind.
const reads = `
get pods -A --chunk-size=3 -o wide
get widgets.v1.example.com -o yaml
get deployment web --subresource=status
get --raw /api/v1/namespaces/default
describe deployment web
describe widget w
describe namespace kube-system
describe node node-0
get all
get pods --show-labels --sort-by=.metadata.name
get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName
get pods -o go-template={{range.items}}{{.metadata.name}}{{end}}
get pods --chunk-size=1
get pods -L app --no-headers
get pods --field-selector=status.phase=Running,spec.nodeName!=nowhere -l app=web -o name
get deployment web -o yaml --show-managed-fields
get widgets
get crd widgets.example.com
get configmap nothing --ignore-not-found
get pods -n nowhere
get -f first.yaml
get componentstatuses
events
events --for=deployment/web
get events --sort-by=.metadata.creationTimestamp --field-selector=involvedObject.kind=Deployment
describe pods -l app=web
describe configmap settings
describe service web
describe crd widgets.example.com
describe pod nothing
diff -f first.yaml
diff -f second.yaml
explain widgets
explain deployment.spec.strategy --recursive
explain nothing
api-resources --namespaced=false
api-versions
cluster-info
version
top pods -A
auth can-i --list --as=nobody
rollout history deployment/web --revision=1
wait deployment/web --for=condition=Available --timeout=150s
logs deployment/nothing
logs web-0
`

// TestKubectlReads: commands that only read print the same at both sides.
func TestKubectlReads(t *testing.T) {
	most := len(reads)
	if testing.Short() {
		most = 4
	}
	ns := namespace(t)
	dir := manifests(t)
	kubectl(t, "-n", ns, "apply", "-f", filepath.Join(dir, "first.yaml"))
	apply(t, strings.ReplaceAll(widgets, "NAMESPACE", ns))
	established(t, "widgets.example.com")
	apply(t, strings.ReplaceAll(widget, "NAMESPACE", ns))
	kubectl(t, "-n", ns, "rollout", "status", "deployment/web")
	for name, command := range kubectls(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, line := range commandsFor(name, reads, most) {
				var out [2]string
				for range 10 { // objects may change between the two commands
					out = both(t, command, [2]string{ns, ns}, dir, nil, strings.Fields(line)...)
					// One command prints the server's URL.
					out[via] = strings.ReplaceAll(out[via], gw.URL, "URL")
					out[straight] = strings.ReplaceAll(out[straight], cluster.Config.Host, "URL")
					if out[via] == out[straight] {
						break
					}
				}
				if out[via] != out[straight] {
					t.Errorf("kubectl %s(-direct +gateway)\n%s", line, cmp.Diff(out[straight], out[via]))
				}
			}
		})
	}
}
