// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/util/flushwriter"
	"k8s.io/client-go/kubernetes"
	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	crilogs "k8s.io/cri-client/pkg/logs"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

const (
	kubeletIdle   = time.Hour        // of exec, attach and port-forward without a byte
	kubeletCreate = 30 * time.Second // within which a client opens its streams
)

// A kubelet serves `kubectl logs`, exec, attach and port-forward of all Pods, in the place of
// the kubelets of the simulated nodes: kwok's own server does so for everybody who can
// connect. Only the API server may: a client needs the certificate that the API server has for
// kubelets. What is asked for is done for containers that run, of Pods that exist.
type kubelet struct {
	client   kubernetes.Interface
	files    podFiles
	exec     bool // run the commands of exec (`up --exec`)
	launcher launcher
	// target returns where a program runs for a Pod (`up --run`); nil for other Pods.
	target func(pod types.UID) *podProgram
}

// serveKubelet serves it until ctx ends. The returned function waits for the end.
func (c cluster) serveKubelet(ctx context.Context, port int, k *kubelet) (wait func(), err error) {
	config, err := c.tlsConfig("ca", "server")
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.VerifyConnection = onlyAPIServer
	config.NextProtos = []string{"http/1.1"} // streams take over the connection
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, TLSConfig: config, Handler: k.handler()}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.ServeTLS(listener, "", "") // until Close
	}()
	context.AfterFunc(ctx, func() { server.Close() })
	return func() { <-served }, nil
}

// onlyAPIServer refuses the certificates of other users, which the same authority issues.
func onlyAPIServer(state tls.ConnectionState) error {
	if user := state.PeerCertificates[0].Subject.CommonName; user != kubeletClient {
		return fmt.Errorf("%s is not the API server", user)
	}
	return nil
}

func (k *kubelet) handler() http.Handler {
	mux := http.NewServeMux()
	for path, serve := range map[string]func(http.ResponseWriter, *http.Request, *corev1.Pod){
		"/containerLogs/{namespace}/{pod}/{container}": k.logs,
		"/exec/{namespace}/{pod}/{container}":          k.execute,
		"/exec/{namespace}/{pod}/{uid}/{container}":    k.execute,
		"/attach/{namespace}/{pod}/{container}":        k.attach,
		"/attach/{namespace}/{pod}/{uid}/{container}":  k.attach,
		"/portForward/{namespace}/{pod}":               k.forward,
		"/portForward/{namespace}/{pod}/{uid}":         k.forward,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			pod, err := k.pod(r)
			if err != nil {
				http.Error(w, err.Error(), codeOf(err))
				return
			}
			serve(w, r, pod)
		})
	}
	return mux
}

// pod returns the Pod of a request, with its container if the request names one.
func (k *kubelet) pod(r *http.Request) (*corev1.Pod, error) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, err := k.client.CoreV1().Pods(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if uid := r.PathValue("uid"); uid != "" && uid != string(pod.UID) {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	isIt := func(c corev1.ContainerStatus) bool { return c.Name == container }
	if all := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses); container != "" && !slices.ContainsFunc(all, isIt) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("container %q of Pod %s/%s has not started", container, namespace, name))
	}
	return pod, nil
}

func codeOf(err error) int {
	var s apierrors.APIStatus
	if errors.As(err, &s) && s.Status().Code != 0 {
		return int(s.Status().Code)
	}
	return http.StatusInternalServerError
}

// logs serves the log of a container (kubelet, GET /containerLogs).
func (k *kubelet) logs(w http.ResponseWriter, r *http.Request, pod *corev1.Pod) {
	var options corev1.PodLogOptions
	if err := legacyscheme.ParameterCodec.DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, &options); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	opts := &crilogs.LogOptions{TailLines: options.TailLines, LimitBytes: options.LimitBytes, Follow: options.Follow, Timestamp: options.Timestamps}
	if options.SinceSeconds != nil {
		opts.Since = time.Now().Add(-time.Duration(*options.SinceSeconds) * time.Second)
	}
	if options.SinceTime != nil && options.SinceTime.After(opts.Since) {
		opts.Since = options.SinceTime.Time
	}
	current, previous := k.logFiles(pod, r.PathValue("container"))
	if options.Previous {
		current = previous
	}
	out := flushwriter.Wrap(w)
	if err := readLog(r.Context(), current, opts, out); err != nil && r.Context().Err() == nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// logFiles returns the log of a container and that of its run before.
func (k *kubelet) logFiles(pod *corev1.Pod, container string) (current, previous string) {
	if p := k.target(pod.UID); p != nil && container == pod.Spec.Containers[0].Name {
		return p.log, p.log
	}
	return k.files.log, k.files.previous
}

// attach follows the log of a container.
func (k *kubelet) attach(w http.ResponseWriter, r *http.Request, pod *corev1.Pod) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	file, _ := k.logFiles(pod, r.PathValue("container"))
	remotecommand.ServeAttach(w, r, follower(file), pod.Name, string(pod.UID), r.PathValue("container"), options, kubeletIdle, kubeletCreate, remotecommand.SupportedStreamingProtocols)
}

// A follower is a log file that is followed from its end.
type follower string

// AttachContainer implements remotecommand.Attacher.
func (f follower) AttachContainer(ctx context.Context, _, _, _ string, _ io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	return readLog(ctx, string(f), &crilogs.LogOptions{TailLines: new(int64), Follow: true}, out)
}

func readLog(ctx context.Context, file string, opts *crilogs.LogOptions, out io.Writer) error {
	return crilogs.ReadLogs(ctx, file, "", opts, noRuntime{}, out, out)
}

// noRuntime has no state of containers, so that a log is followed until its reader ends.
type noRuntime struct{ criapi.RuntimeService }

func (noRuntime) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	return nil, status.Error(codes.Unavailable, "there is no container runtime")
}

// forward connects to the program of a Pod, or to the HTTP server of all others.
func (k *kubelet) forward(w http.ResponseWriter, r *http.Request, pod *corev1.Pod) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f := forwarder{server: k.files.server}
	if p := k.target(pod.UID); p != nil {
		f = forwarder{program: p.address}
		for _, port := range pod.Spec.Containers[0].Ports {
			f.ports = append(f.ports, port.ContainerPort)
		}
	}
	portforward.ServePortForward(w, r, f, pod.Name, string(pod.UID), options, kubeletIdle, kubeletCreate, portforward.SupportedProtocols)
}

// A forwarder connects to a port of a Pod: of the program at an address that has the ports,
// or of a server, whatever the port.
type forwarder struct {
	server  string
	program string
	ports   []int32
}

// PortForward implements portforward.PortForwarder.
func (f forwarder) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	address := f.server
	if f.program != "" {
		if !slices.Contains(f.ports, port) {
			return fmt.Errorf("the first container has no port %d", port)
		}
		address = net.JoinHostPort(f.program, strconv.Itoa(int(port)))
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go func() {
		_, _ = io.Copy(conn, stream) // until either end closes
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	_, err = io.Copy(stream, conn)
	return err
}
