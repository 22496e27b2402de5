// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/kwok/kustomize/crd"
	"sigs.k8s.io/yaml"
)

// programs are those that containers run on this machine (`up --run`), by the image: the
// last element of its name, without tag and digest.
type programs map[string]string

// parsePrograms reads the values of --run, IMAGE=PROGRAM.
func parsePrograms(values []string) (programs, error) {
	p := programs{}
	for _, value := range values {
		image, program, ok := strings.Cut(value, "=")
		if !ok || image == "" || program == "" || strings.ContainsAny(image, "/:@") {
			return nil, fmt.Errorf("--run %q must be IMAGE=PROGRAM, such as watchkeeper=bin/watchkeeper; the image has no registry and no tag", value)
		}
		found, err := exec.LookPath(program)
		if err == nil {
			found, err = filepath.Abs(found)
		}
		if err != nil {
			return nil, fmt.Errorf("--run %s: %w", value, err)
		}
		p[image] = found
	}
	return p, nil
}

// of returns the program of a Pod's first container; "" if it has none.
func (p programs) of(pod *corev1.Pod) string {
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	image, _, _ := strings.Cut(path.Base(pod.Spec.Containers[0].Image), "@")
	image, _, _ = strings.Cut(image, ":")
	return p[image]
}

// A runner runs the programs of the Pods that are on a Node, each until its Pod is deleted.
type runner struct {
	cluster  cluster
	server   string // URL of the API server
	programs programs
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	launcher launcher
	out      io.Writer

	pods sync.WaitGroup
	mu   sync.Mutex // guards ends
	ends map[types.UID]context.CancelFunc
}

// runPrograms runs the programs until ctx ends. The returned function waits until they have
// ended.
func (c cluster) runPrograms(ctx context.Context, server string, programs programs, out io.Writer) (wait func(), err error) {
	r := &runner{cluster: c, server: server, programs: programs, launcher: newLauncher(), out: out, ends: map[types.UID]context.CancelFunc{}}
	if r.client, err = c.client(); err != nil {
		return nil, err
	}
	if r.dynamic, err = c.dynamicClient(); err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(r.client, 0)
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.see(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { r.see(ctx, o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			r.end(o.(*corev1.Pod).UID)
		},
	}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done()) // StartWithContext is newer than the oldest Kubernetes that is built
	return func() {
		factory.Shutdown()
		r.pods.Wait()
	}, nil
}

// see starts the program of a Pod when kwok says that it runs, and ends it when the Pod is
// to be deleted.
func (r *runner) see(ctx context.Context, pod *corev1.Pod) {
	program := r.programs.of(pod)
	if program == "" || pod.Status.Phase != corev1.PodRunning {
		return
	}
	if pod.DeletionTimestamp != nil {
		r.end(pod.UID)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.ends[pod.UID]; known {
		return
	}
	ctx, r.ends[pod.UID] = context.WithCancel(ctx)
	r.pods.Go(func() { r.run(ctx, pod, program) })
}

// end ends the program of a Pod, if it runs.
func (r *runner) end(pod types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end := r.ends[pod]; end != nil {
		end()
	}
}

const (
	firstRestart = time.Second
	lastRestart  = 30 * time.Second
)

// run runs the program of a Pod until ctx ends. Like a kubelet, it starts a program again
// that has ended.
func (r *runner) run(ctx context.Context, pod *corev1.Pod, program string) {
	report := func(format string, args ...any) {
		fmt.Fprintf(r.out, "Pod %s/%s: %s\n", pod.Namespace, pod.Name, fmt.Sprintf(format, args...))
	}
	p, err := r.prepare(ctx, pod, program)
	if err == nil {
		err = r.redirect(ctx, pod, p)
	}
	if p != nil {
		defer p.close()
	}
	if err != nil {
		if ctx.Err() == nil {
			report("%s is not run: %v", program, err)
		}
		return
	}
	for delay := firstRestart; ; delay = min(2*delay, lastRestart) {
		report("running %s at %s", program, p.address)
		err := r.runOnce(ctx, p)
		if ctx.Err() != nil {
			return
		}
		report("%s ended: %v; see kubectl logs", program, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// runOnce runs the program until it ends, or ends it when ctx does.
func (r *runner) runOnce(ctx context.Context, p *podProgram) error {
	cmd := p.command()
	cmd.SysProcAttr = processAttributes()
	if err := r.launcher.start(cmd); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			err = errors.New("exit status 0")
		}
		return err
	case <-ctx.Done():
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // fails if it has ended
	select {
	case <-ended:
	case <-time.After(p.grace):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	return ctx.Err()
}

var (
	kwokVersion   = schema.GroupVersion{Group: "kwok.x-k8s.io", Version: "v1alpha1"}
	crdResource   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	kwokResources = map[string]string{"PortForward": "portforwards", "Logs": "logs"}
)

// redirect lets kwok lead port-forward and logs of a Pod to its program.
func (r *runner) redirect(ctx context.Context, pod *corev1.Pod, p *podProgram) error {
	var forwards []any
	for _, port := range pod.Spec.Containers[0].Ports {
		forwards = append(forwards, map[string]any{"ports": []any{int64(port.ContainerPort)}, "target": map[string]any{"address": p.address, "port": int64(port.ContainerPort)}})
	}
	specs := map[string]map[string]any{
		"Logs": {"logs": []any{map[string]any{"containers": []any{pod.Spec.Containers[0].Name}, "logsFile": p.log, "previousLogsFile": p.log, "follow": true}}},
	}
	if forwards != nil {
		specs["PortForward"] = map[string]any{"forwards": forwards}
	}
	for kind, spec := range specs {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kwokVersion.String(), "kind": kind,
			"metadata": map[string]any{"name": pod.Name, "namespace": pod.Namespace},
			"spec":     spec,
		}}
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}})
		_, err := r.dynamic.Resource(kwokVersion.WithResource(kwokResources[kind])).Namespace(pod.Namespace).
			Apply(ctx, pod.Name, object, metav1.ApplyOptions{FieldManager: "localcluster", Force: true})
		if err != nil {
			return err
		}
	}
	return nil
}

// definePodResources lets kwok read the resources of redirect, which are then in the cluster.
func definePodResources(specs []spec, c cluster) {
	for i := range specs {
		if specs[i].name != kwokController {
			continue
		}
		before := specs[i].before
		specs[i].args = append(specs[i].args, "--enable-crds=Logs,PortForward")
		specs[i].before = func(ctx context.Context) error {
			if err := c.createPodResources(ctx); err != nil {
				return err
			}
			return before(ctx)
		}
	}
}

func (c cluster) createPodResources(ctx context.Context) error {
	client, err := c.dynamicClient()
	if err != nil {
		return err
	}
	for _, definition := range [][]byte{crd.Logs, crd.PortForward} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(definition, object); err != nil {
			return err
		}
		if _, err := client.Resource(crdResource).Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("defining %s: %w", object.GetName(), err)
		}
	}
	return nil
}
