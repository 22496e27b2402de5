// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime is that of the token of a Pod, which is revoked when the Pod is deleted.
const tokenLifetime = 30 * 24 * time.Hour

// A podProgram is what a Pod's first container runs on this machine: the container's
// arguments, environment and ServiceAccount, but neither its root nor its user.
type podProgram struct {
	program   string
	args, env []string
	dir       string // the working directory
	address   string // of this machine, in the place of 0.0.0.0
	grace     time.Duration
	log       string         // file in the format of container runtimes
	output    *io.PipeWriter // to the log
	logged    chan struct{}  // closed when all of the output is there
}

// prepare makes the files that the program needs.
func (r *runner) prepare(ctx context.Context, pod *corev1.Pod, program string) (*podProgram, error) {
	container := pod.Spec.Containers[0]
	p := &podProgram{program: program, address: programAddress(pod.Status.PodIP), grace: stopGrace, logged: make(chan struct{})}
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		p.grace = time.Duration(*seconds) * time.Second
	}
	name := pod.Namespace + "_" + pod.Name
	p.dir = r.cluster.path("pod", "run", name)
	p.log = r.cluster.path("pod", name+".log")
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	if err := r.giveToken(ctx, pod, p.dir); err != nil {
		return nil, err
	}
	mounts, err := r.folders(pod)
	if err != nil {
		return nil, err
	}
	for _, arg := range slices.Concat(container.Command[min(1, len(container.Command)):], container.Args) {
		arg = strings.ReplaceAll(arg, "0.0.0.0", p.address)
		for path, folder := range mounts {
			if name, value, ok := strings.Cut(arg, "="); ok && (value == path || strings.HasPrefix(value, path+"/")) {
				arg = name + "=" + folder + strings.TrimPrefix(value, path)
			}
		}
		p.args = append(p.args, arg)
	}
	if p.env, err = r.environment(pod, p.dir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	in, out := io.Pipe()
	p.output = out
	go func() {
		defer close(p.logged)
		defer file.Close()
		lines := bufio.NewReader(in)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				_, _ = file.WriteString(logLine(strings.TrimSuffix(line, "\n"))) // as appendLog
			}
			if err != nil {
				return
			}
		}
	}()
	return p, nil
}

// command returns the program's command, to be started once.
func (p *podProgram) command() *exec.Cmd {
	cmd := exec.Command(p.program, p.args...)
	cmd.Env, cmd.Dir = p.env, p.dir
	cmd.Stdout, cmd.Stderr = p.output, p.output
	return cmd
}

// close waits until the log has what the program has written.
func (p *podProgram) close() {
	p.output.Close()
	<-p.logged
}

// giveToken writes a kubeconfig with a token of the Pod's ServiceAccount. client-go looks for
// the files of a ServiceAccount at a path that exists in containers only.
func (r *runner) giveToken(ctx context.Context, pod *corev1.Pod, dir string) error {
	seconds := int64(tokenLifetime / time.Second)
	token, err := r.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return saveKubeconfig(podKubeconfig(dir), clientcmdapi.Cluster{Server: r.server, CertificateAuthority: r.cluster.pki("ca.crt")},
		"pod", clientcmdapi.AuthInfo{Token: token.Status.Token}, pod.Namespace)
}

func podKubeconfig(dir string) string { return dir + "/kubeconfig" }

// folders returns the folders of the container's volumes, by their paths in it. Claims keep
// theirs.
func (r *runner) folders(pod *corev1.Pod) (map[string]string, error) {
	volumes := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			volumes[v.Name] = r.cluster.path("pod", "claims", pod.Namespace+"_"+v.PersistentVolumeClaim.ClaimName)
		case v.EmptyDir != nil:
			volumes[v.Name] = r.cluster.path("pod", "run", pod.Namespace+"_"+pod.Name, "volumes", v.Name)
		}
	}
	mounts := map[string]string{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		if m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount" {
			continue
		}
		folder, ok := volumes[m.Name]
		if !ok {
			return nil, fmt.Errorf("its volume %s is neither a claim nor an emptyDir", m.Name)
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		mounts[m.MountPath] = folder
	}
	return mounts, nil
}

// environment returns the variables of the container, and those that lead to the API server.
func (r *runner) environment(pod *corev1.Pod, dir string) ([]string, error) {
	server, err := url.Parse(r.server)
	if err != nil {
		return nil, err
	}
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "HOSTNAME=" + pod.Name,
		"KUBECONFIG=" + podKubeconfig(dir),
		"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port(),
	}
	for _, e := range pod.Spec.Containers[0].Env {
		value := e.Value
		if e.ValueFrom != nil {
			if value, err = resolve(pod, e.ValueFrom); err != nil {
				return nil, fmt.Errorf("the variable %s: %w", e.Name, err)
			}
		}
		env = append(env, e.Name+"="+value)
	}
	return env, nil
}

// resolve returns the value of a variable that comes from the Pod.
func resolve(pod *corev1.Pod, from *corev1.EnvVarSource) (string, error) {
	if from.FieldRef != nil {
		switch from.FieldRef.FieldPath {
		case "metadata.name":
			return pod.Name, nil
		case "metadata.namespace":
			return pod.Namespace, nil
		case "metadata.uid":
			return string(pod.UID), nil
		case "spec.nodeName":
			return pod.Spec.NodeName, nil
		case "status.podIP":
			return programAddress(pod.Status.PodIP), nil
		}
	}
	if ref := from.ResourceFieldRef; ref != nil {
		if kind, resource, _ := strings.Cut(ref.Resource, "."); kind == "limits" && ref.Divisor.IsZero() {
			limit, ok := pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(resource)]
			if ok {
				return strconv.FormatInt(limit.Value(), 10), nil
			}
		}
	}
	return "", fmt.Errorf("only fields and limits of the Pod are known, not %v", from)
}

// programAddress returns the address of this machine for a Pod: the last half is that of the
// Pod's own address. Where only 127.0.0.1 is an address of the machine, all Pods have that.
func programAddress(podIP string) string {
	ip := net.ParseIP(podIP).To4()
	if ip == nil || !manyLoopbacks || ip.IsLoopback() {
		return "127.0.0.1"
	}
	return net.IPv4(127, 64, ip[2], ip[3]).String()
}
