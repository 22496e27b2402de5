// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
)

// etcdName is the name of the only member of etcd's cluster.
const etcdName = "localcluster"

// tier groups components that start and stop together. Each tier depends on the tiers
// before it.
type tier int

const (
	storeTier tier = iota
	apiTier
	clientTier
)

// spec describes how to run a component.
type spec struct {
	name    string // the program's, except for further API servers
	program string
	tier    tier
	args    []string
	env     []string // in addition to this process's
	port    int
	health  func(context.Context) error
	// before, if not nil, is called before each start.
	before func(context.Context) error
}

// componentNames lists the components of a cluster with one API server.
func componentNames() string {
	return strings.Join([]string{etcd, kubeAPIServer, controllerManager, kubeScheduler, kwokController}, ", ")
}

// specs lists the components in the order of their tiers. more are additional arguments
// of each API server.
func (c cluster) specs(s state, apiservers []apiServer, more []string) ([]spec, error) {
	etcdClient, err := c.healthClient("etcd-ca", "apiserver-etcd")
	if err != nil {
		return nil, err
	}
	client, err := c.healthClient("ca", "admin")
	if err != nil {
		return nil, err
	}
	specs := []spec{c.etcdSpec(s, etcdClient)}
	for _, a := range apiservers {
		specs = append(specs, c.apiserverSpec(a, client, more))
	}
	return append(specs,
		c.controllerManagerSpec(s, client),
		c.schedulerSpec(s, client),
		c.kwokSpec(s, client),
	), nil
}

func (c cluster) etcdSpec(s state, client *http.Client) spec {
	clientURL := "https://" + loopback(s.Ports[etcd])
	peerURL := "https://" + loopback(s.Ports[portEtcdPeer])
	return spec{
		name:    etcd,
		program: etcd,
		tier:    storeTier,
		args: []string{
			"--name=" + etcdName,
			"--data-dir=" + c.path("etcd"),
			"--listen-client-urls=" + clientURL,
			"--advertise-client-urls=" + clientURL,
			"--listen-peer-urls=" + peerURL,
			"--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=" + etcdName + "=" + peerURL,
			"--cert-file=" + c.pki("etcd.crt"),
			"--key-file=" + c.pki("etcd.key"),
			"--trusted-ca-file=" + c.pki("etcd-ca.crt"),
			"--client-cert-auth",
			"--peer-cert-file=" + c.pki("etcd.crt"),
			"--peer-key-file=" + c.pki("etcd.key"),
			"--peer-trusted-ca-file=" + c.pki("etcd-ca.crt"),
			"--peer-client-cert-auth",
			// This is a test cluster, whose data may be lost in a power
			// failure, so writes do not wait for the disk. Killing a process
			// loses nothing: the kernel has its writes.
			"--unsafe-no-fsync",
			"--quota-backend-bytes=8589934592",
			"--log-level=warn",
		},
		port:   s.Ports[etcd],
		health: httpHealth(client, clientURL+"/health"),
	}
}

func (c cluster) apiserverSpec(a apiServer, client *http.Client, more []string) spec {
	health := httpHealth(client, "https://"+loopback(a.port)+"/readyz")
	if a.check != nil {
		itself := health
		health = func(ctx context.Context) error {
			if err := itself(ctx); err != nil {
				return err
			}
			return a.check(ctx)
		}
	}
	return spec{
		name:    a.name,
		program: kubeAPIServer,
		tier:    apiTier,
		args: override([]string{
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", a.port),
			"--advertise-address=127.0.0.1",
			// The endpoints of the `kubernetes` Service may not be loopback
			// addresses, and no traffic goes there anyway.
			"--endpoint-reconciler-type=none",
			"--etcd-servers=https://" + a.etcd,
			"--etcd-cafile=" + c.pki("etcd-ca.crt"),
			"--etcd-certfile=" + c.pki("apiserver-etcd.crt"),
			"--etcd-keyfile=" + c.pki("apiserver-etcd.key"),
			"--tls-cert-file=" + c.pki("server.crt"),
			"--tls-private-key-file=" + c.pki("server.key"),
			"--client-ca-file=" + c.pki("ca.crt"),
			"--authorization-mode=Node,RBAC",
			"--kubelet-certificate-authority=" + c.pki("ca.crt"),
			"--kubelet-client-certificate=" + c.pki("apiserver-kubelet.crt"),
			"--kubelet-client-key=" + c.pki("apiserver-kubelet.key"),
			"--kubelet-preferred-address-types=InternalIP",
			"--requestheader-client-ca-file=" + c.pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + c.pki("front-proxy.crt"),
			"--proxy-client-key-file=" + c.pki("front-proxy.key"),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + c.pki("sa.key"),
			"--service-account-signing-key-file=" + c.pki("sa.key"),
			"--service-cluster-ip-range=10.0.0.0/24",
			"--allow-privileged",
		}, more),
		port:   a.port,
		health: health,
		before: a.before,
	}
}

// override appends more to args, without those of args that more has a value for:
// kube-apiserver would add up the values of some flags, such as --authorization-mode.
func override(args, more []string) []string {
	name := func(arg string) string {
		name, _, _ := strings.Cut(arg, "=")
		return name
	}
	return append(slices.DeleteFunc(args, func(arg string) bool {
		return slices.ContainsFunc(more, func(other string) bool { return name(other) == name(arg) })
	}), more...)
}

func (c cluster) controllerManagerSpec(s state, client *http.Client) spec {
	manager := c.controllerSpec(controllerManager, s, client,
		"--service-account-private-key-file="+c.pki("sa.key"),
		"--root-ca-file="+c.pki("ca.crt"),
		"--cluster-signing-cert-file="+c.pki("ca.crt"),
		"--cluster-signing-key-file="+c.pki("ca.key"),
		"--use-service-account-credentials",
	)
	// It is healthy before it has built its controllers, and exits if an API server fails
	// meanwhile. Its checks have the controllers once all of them are built.
	manager.health = httpHealth(client, "https://"+loopback(manager.port)+"/healthz?verbose", "serviceaccount-controller")
	return manager
}

func (c cluster) schedulerSpec(s state, client *http.Client) spec {
	return c.controllerSpec(kubeScheduler, s, client)
}

// controllerSpec returns the spec of the controller manager or the scheduler. more are
// the arguments that the other one does not have.
func (c cluster) controllerSpec(name string, s state, client *http.Client, more ...string) spec {
	return spec{
		name:    name,
		program: name,
		tier:    clientTier,
		args:    append(c.controllerArgs(name, s), more...),
		port:    s.Ports[name],
		health:  httpHealth(client, "https://"+loopback(s.Ports[name])+"/healthz"),
	}
}

// controllerArgs returns the arguments that the controller manager and the scheduler
// have in common.
func (c cluster) controllerArgs(name string, s state) []string {
	kubeconfig := c.pki(name + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.Ports[name]),
		"--tls-cert-file=" + c.pki("server.crt"),
		"--tls-private-key-file=" + c.pki("server.key"),
		"--leader-elect=false", // there is only one
		// The default rates (20 and 50 per second) would be the bottleneck
		// under `localcluster load`.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

func (c cluster) kwokSpec(s state, client *http.Client) spec {
	address := loopback(s.Ports[kwokController])
	return spec{
		name:    kwokController,
		program: kwokController,
		tier:    clientTier,
		args: []string{
			"--config=" + c.path("kwok.yaml"),
			"--kubeconfig=" + c.pki(kwokController+".kubeconfig"),
			"--manage-all-nodes=true",
			"--node-ip=127.0.0.1",
			fmt.Sprintf("--node-port=%d", s.Ports[portKubelet]),
			// The default is to listen on every interface.
			"--server-address=" + address,
			"--tls-cert-file=" + c.pki("server.crt"),
			"--tls-private-key-file=" + c.pki("server.key"),
			"--cidr=10.64.0.1/16",
			"--node-lease-duration-seconds=40",
		},
		env: []string{
			// kwok would also load a kwok.yaml from the user's home directory.
			"HOME=" + c.path("pod"),
			"KWOK_WORKDIR=" + c.path("pod"),
		},
		port:   s.Ports[kwokController],
		health: httpHealth(client, "https://"+address+"/healthz"),
		before: c.releaseNodes,
	}
}

// httpHealth returns a health check that requires 200 from the URL, and these checks in the
// answer.
func httpHealth(client *http.Client, url string, checks ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", response.Status, failedChecks(string(body)))
		}
		for _, check := range checks {
			if !strings.Contains(string(body), "[+]"+check+" ok") {
				return fmt.Errorf("%s has no check %s yet", url, check)
			}
		}
		return nil
	}
}

// failedChecks returns the failed checks in the answer of a health endpoint, which has
// a line per check.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			failed = append(failed, strings.TrimSpace(check))
		}
	}
	if failed == nil {
		return strings.TrimSpace(body[:min(len(body), 200)])
	}
	return strings.Join(failed, "; ")
}

// environment returns this process's environment with additions, which override it.
func environment(additions []string) []string {
	return append(os.Environ(), additions...)
}
