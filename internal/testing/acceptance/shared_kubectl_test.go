// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

// sharedSession is a kubectl session of a user with the rights of an admin in one
// namespace. No argument contains a space.
const sharedSession = `
auth can-i list pods
auth can-i create deployments
auth can-i list nodes
auth can-i --list
auth can-i get pods --as=ada
auth whoami
apply -f first.yaml
get configmap/settings -o jsonpath={.data}
get configmap settings -o yaml
get configmaps
get configmaps -l app=web
get configmaps -l app=web -o name --watch --request-timeout=8s
get configmaps -o name --chunk-size=1
get deployment,service
get nodes
get pods -A
get namespaces
describe configmap settings
describe service web
label configmap settings shade=dark
patch configmap settings --type=merge -p {"data":{"patched":"merge"}}
create configmap made --from-literal=a=b
create configmap made --from-literal=a=b
create clusterrole nothing --verb=get --resource=pods
run solo --image=nginx --labels=a=b
wait pod/solo --for=condition=Ready --timeout=150s
get pod solo -o jsonpath={.status.phase}
describe pod nothing
logs solo --limit-bytes=27
exec solo -- echo hi
get configmaps --as=ada
get pods --as=ada --as-group=system:masters
auth whoami --as=ada
delete pod solo --timeout=150s
delete configmap made
delete configmap made
explain configmap.data
api-resources --api-group=apps -o name
version
delete -f first.yaml --timeout=150s
get configmap settings
`

// impersonations are the commands of sharedSession whose result depends on the right to
// impersonate, and some others.
const impersonations = `
auth can-i get pods --as=ada
auth whoami
apply -f first.yaml
get configmap settings -o yaml
get configmaps
get configmaps --as=ada
get configmaps -l app=web --as=ada
get pods --as=ada --as-group=system:masters
create configmap made --from-literal=a=b --as=ada
auth whoami --as=ada
delete -f first.yaml --timeout=150s
`

// Commands of a certificate's user at a gateway without --impersonate: those that it
// answers from the cache, and those that only the API server can answer. A list of Events
// is among the first only if one comes in time to prove that the cache is current.
const (
	certificateReads = `
get configmaps
get pods
get configmap/settings -o jsonpath={.data}
get configmap settings -o yaml
get configmap settings
get configmap nothing -o yaml
get configmap nothing
get configmaps --request-timeout=5s
get configmaps -l app=web
get configmaps -o name --chunk-size=1
get deployment,service
get nodes
get pods -A
get pod solo -o jsonpath={.status.phase}
wait pod/solo --for=condition=Ready --timeout=150s
describe configmap settings --show-events=false
describe pod nothing
api-resources --api-group=apps -o name
version
`
	certificateRefused = `
auth can-i list pods
auth can-i create deployments
auth can-i --list
create configmap made --from-literal=a=b
apply --validate=false -f second.yaml
label configmap settings shade=dark
logs solo --limit-bytes=27
exec solo -- echo hi
run another --image=nginx
delete pod solo --timeout=150s
delete configmap settings
`
	// Impersonation by users with a certificate is refused, with and without --impersonate.
	certificateAs = `
auth can-i get pods --as=ada
get configmaps --as=ada
get pods --as=ada --as-group=system:masters
`
	// Of these kubectl does not show the refusal.
	certificateWhoami = `
auth whoami --as=ada
`
)

// A kubectlUser uses kubectl at both sides.
type kubectlUser struct {
	what        string
	name        string // at the API server
	token       string // empty for a user with a certificate
	impersonate bool   // may act as ada
	gateway     *clustertest.SharedGateway
	same        string            // commands that have the same output at both sides
	refused     map[string]string // the gateway's refusal of further commands
}

// TestSharedKubectl runs the same session as different users, at the API server and
// through gateways in shared mode. Each command prints the same and has the same exit code.
// Users with a client certificate get from a gateway without --impersonate only what it
// answers itself.
func TestSharedKubectl(t *testing.T) {
	clustertest.SkipShort(t)
	inStage(t, quiet)
	home := namespace(t)
	tokens := map[string]string{}
	for _, name := range []string{"reader", "ada-too", "impersonator"} {
		kubectl(t, "-n", home, "create", "serviceaccount", name)
		var err error
		if tokens[name], err = cluster.Token(t.Context(), home, name, 0); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, strings.ReplaceAll(impersonatorRole, "NAMESPACE", home))
	t.Cleanup(func() {
		_ = cluster.Kubectl(context.Background(), "delete", "clusterrolebindings,clusterroles", "-l", "test=shared-kubectl").Run()
	})
	without, with := startShared(t), startShared(t, "--impersonate", "--impersonate-service-account", home+"/impersonator")
	account := "system:serviceaccount:" + home + ":"
	const (
		noToken = "can impersonate others only with a token"
		only    = "let the gateway's operator set --impersonate"
		hidden  = "you do not have permission to call it"
	)
	for _, u := range []kubectlUser{
		{what: "token", name: account + "reader", token: tokens["reader"], gateway: without, same: sharedSession},
		{what: "token that may impersonate", name: account + "ada-too", token: tokens["ada-too"], gateway: without, impersonate: true, same: impersonations},
		{what: "certificate", name: "grace", gateway: with, same: except(sharedSession, certificateAs+certificateWhoami),
			refused: map[string]string{certificateAs: noToken, certificateWhoami: hidden}},
		{what: "certificate without --impersonate", name: "hopper", gateway: without, same: certificateReads,
			refused: map[string]string{certificateRefused: only, certificateAs: noToken, certificateWhoami: hidden}},
	} {
		t.Run(u.what, func(t *testing.T) {
			t.Parallel()
			u.session(t)
		})
	}
}

// except returns commands without others.
func except(commands, others string) string {
	var left strings.Builder
	for line := range strings.Lines(commands) {
		if line == "\n" || !strings.Contains(others, line) {
			left.WriteString(line)
		}
	}
	return left.String()
}

// session runs the commands at both sides, each in its namespace.
func (u *kubectlUser) session(t *testing.T) {
	ns := [2]string{namespace(t, "-direct"), namespace(t, "-gateway")}
	dir := manifests(t)
	for _, in := range ns {
		subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: u.name}, {APIGroup: rbacv1.GroupName, Kind: "User", Name: "ada"}}
		_, err := api.RbacV1().RoleBindings(in).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "admin"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if u.same == certificateReads { // who cannot make them at the gateway
			kubectl(t, "-n", in, "apply", "-f", filepath.Join(dir, "first.yaml"))
			kubectl(t, "-n", in, "rollout", "status", "deployment/web")
			kubectl(t, "-n", in, "run", "solo", "--image=nginx", "--labels=a=b")
			kubectl(t, "-n", in, "wait", "pod/solo", "--for=condition=Ready", "--timeout=150s")
		}
	}
	if u.impersonate {
		apply(t, strings.ReplaceAll(mayBeAda, "USER", u.name))
		eventually(t, "the right to impersonate", func() bool {
			_, ok := run(t, cluster.Kubectl(t.Context()).Args, "auth", "can-i", "impersonate", "users/ada", "--as", u.name)
			return ok
		})
	}
	configs := u.kubeconfigs(t, dir)
	for _, args := range commandsOf(u.same) {
		out := bothAs(t, configs, ns, dir, args...)
		if out[via] != out[straight] {
			t.Errorf("kubectl %s\n(-direct +gateway)\n%s", strings.Join(args, " "), cmp.Diff(out[straight], out[via]))
		}
	}
	for commands, refusal := range u.refused {
		for _, args := range commandsOf(commands) {
			if out := bothAs(t, configs, ns, dir, args...); !strings.Contains(out[via], refusal) || !strings.Contains(out[via], "exit code 1") {
				t.Errorf("kubectl %s: %s, want %q", strings.Join(args, " "), out[via], refusal)
			}
		}
	}
}

// commandsOf returns the arguments of commands, one a line.
func commandsOf(text string) (all [][]string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		all = append(all, strings.Fields(line))
	}
	return all
}

// kubeconfigs writes the user's kubeconfig for each side.
func (u *kubectlUser) kubeconfigs(t *testing.T, dir string) (files [2]string) {
	t.Helper()
	auth := &clientcmdapi.AuthInfo{Token: u.token}
	if u.token == "" {
		var err error
		if auth.ClientCertificateData, auth.ClientKeyData, err = cluster.ClientCert(u.name); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range sides {
		c := clientcmdapi.NewConfig()
		c.Clusters["c"] = &clientcmdapi.Cluster{Server: cluster.Config.Host, CertificateAuthority: filepath.Join(cluster.Dir, "pki", "ca.crt")}
		if at == via {
			c.Clusters["c"] = &clientcmdapi.Cluster{Server: u.gateway.URL, CertificateAuthority: u.gateway.CA}
		}
		c.AuthInfos["u"] = auth
		c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
		c.CurrentContext = "x"
		files[at] = filepath.Join(dir, at.String()+".kubeconfig")
		if err := clientcmd.WriteToFile(*c, files[at]); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// bothAs runs kubectl with both kubeconfigs at once, each in its namespace, and returns
// what it printed, without what always differs, and its exit code.
func bothAs(t *testing.T, configs, ns [2]string, dir string, args ...string) (out [2]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for _, at := range sides {
		wg.Go(func() {
			command := cluster.Kubectl(ctx).Args
			command = append(command[:len(command):len(command)], "--kubeconfig", configs[at], "-n", ns[at])
			cmd := exec.CommandContext(ctx, command[0], append(command[1:], args...)...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), noGC, "KUBECACHEDIR="+filepath.Join(dir, "cache-"+at.String()))
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

const mayBeAda = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: be-ada, labels: {test: shared-kubectl}}
rules: [{apiGroups: [""], resources: [users], resourceNames: [ada], verbs: [impersonate]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: be-ada, labels: {test: shared-kubectl}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: be-ada}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "USER"}]
`

const impersonatorRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shared-impersonator, labels: {test: shared-kubectl}}
rules:
- {apiGroups: [""], resources: [users, groups, serviceaccounts], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: [uids, userextras/authentication.kubernetes.io/credential-id], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: token-of-impersonator, namespace: NAMESPACE}
rules:
- {apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [impersonator], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: token-of-impersonator, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: token-of-impersonator}
subjects: [{kind: ServiceAccount, namespace: watchkeeper, name: watchkeeper}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: shared-impersonator, labels: {test: shared-kubectl}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: shared-impersonator}
subjects: [{kind: ServiceAccount, namespace: NAMESPACE, name: impersonator}]
`
