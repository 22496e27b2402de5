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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
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
	launcher launcher
	out      io.Writer

	pods    sync.WaitGroup
	mu      sync.Mutex // guards what follows
	ends    map[types.UID]context.CancelFunc
	running map[types.UID]*podProgram
}

// of returns the program of a Pod while it is run; nil for other Pods.
func (r *runner) of(pod types.UID) *podProgram {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[pod]
}

func (r *runner) set(pod types.UID, p *podProgram) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p == nil {
		delete(r.running, pod)
		return
	}
	r.running[pod] = p
}

func (c cluster) newRunner(server string, programs programs, client kubernetes.Interface, out io.Writer) *runner {
	return &runner{
		cluster: c, server: server, programs: programs, client: client, launcher: newLauncher(), out: out,
		ends: map[types.UID]context.CancelFunc{}, running: map[types.UID]*podProgram{},
	}
}

// start runs the programs until ctx ends. The returned function waits until they have ended.
func (r *runner) start(ctx context.Context) (wait func(), err error) {
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
	if err != nil {
		if ctx.Err() == nil {
			report("%s is not run: %v", program, err)
		}
		return
	}
	defer p.close()
	r.set(pod.UID, p)
	defer r.set(pod.UID, nil)
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
