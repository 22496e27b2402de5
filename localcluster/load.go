// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// loadOptions are the flags of `localcluster load`.
type loadOptions struct {
	pods       int
	churn      float64 // changes per second
	namespaces int
	duration   time.Duration // 0: until interrupted
	seed       uint64
	cleanup    bool
	life       bool
}

func loadCommand(dir *string) *cobra.Command {
	var options loadOptions
	command := &cobra.Command{
		Use:   "load",
		Short: "Create Pods and change them until Ctrl-C",
		Long: `Create realistic Pods (about 4 KB of JSON each) in the namespaces load-0, load-1, …
and change them: labels, annotations and status, some deletes and creates. Pods of
an earlier run are used again. Without --churn and --for the command ends when the
Pods exist.

With --life it runs a few small Deployments instead, which roll out, scale,
crash-loop and recover every few seconds.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.pods < 0 || options.churn < 0 || options.namespaces < 1 {
				return errors.New("--pods and --churn must be 0 or more, --namespaces 1 or more")
			}
			client, err := clusterAt(*dir).client()
			if err != nil {
				return err
			}
			run := runLoad
			if options.life {
				run = runLife
			}
			return run(command.Context(), client, options, os.Stdout)
		},
	}
	flags := command.Flags()
	flags.IntVar(&options.pods, "pods", 1000, "number of Pods")
	flags.Float64Var(&options.churn, "churn", 0, "changes per second")
	flags.IntVar(&options.namespaces, "namespaces", 4, "number of namespaces")
	flags.DurationVar(&options.duration, "for", 0, "how long to continue after the Pods exist (0: until Ctrl-C)")
	flags.Uint64Var(&options.seed, "seed", 1, "seed of all random choices")
	flags.BoolVar(&options.cleanup, "cleanup", false, "delete the namespaces at the end")
	flags.BoolVar(&options.life, "life", false, "run a few Deployments that change instead")
	return command
}

// loadWorkers is the number of workers. Each changes its own share of the Pods.
const loadWorkers = 16

// reportInterval is the interval of progress lines.
const reportInterval = 3 * time.Second

// loader keeps a number of Pods. Each slot has at most one Pod at a time; when that is
// deleted, the slot's next generation is created.
type loader struct {
	client  kubernetes.Interface
	options loadOptions
	nodes   []string
	owners  map[string]types.UID // by namespace/name; filled before any worker starts
	slots   []slot               // slot i belongs to worker i mod loadWorkers

	made, patched, statused, deleted, failed atomic.Int64

	mu      sync.Mutex
	lastErr error
}

type slot struct {
	generation int
	alive      bool
	// running is set when the Pod has been Running. Before that its conditions are
	// not changed, since kwok does not start a Pod that is Ready.
	running bool
}

func runLoad(ctx context.Context, client kubernetes.Interface, options loadOptions, out io.Writer) error {
	l := &loader{client: client, options: options, owners: map[string]types.UID{}, slots: make([]slot, options.pods)}
	if options.cleanup {
		// An interrupted run is cleaned up as well.
		defer l.cleanup(context.WithoutCancel(ctx), out)
	}
	if err := l.prepare(ctx, out); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("preparing namespaces and owners: %w; is the cluster up (localcluster status)?", err)
	}

	began := time.Now()
	l.work(ctx, out, l.fill)
	if ctx.Err() == nil {
		fmt.Fprintf(out, "%d pods exist after %s\n", options.pods, elapsed(began))
	}
	if options.churn == 0 && options.duration == 0 || options.pods == 0 {
		return nil
	}
	if options.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, options.duration)
		defer cancel()
	}
	if options.churn == 0 {
		<-ctx.Done()
		return nil
	}
	limit := rate.NewLimiter(rate.Limit(options.churn), max(1, int(options.churn/10)))
	l.work(ctx, out, func(ctx context.Context, worker int) { l.churn(ctx, worker, limit) })
	return nil
}

// work calls run in every worker, and reports progress until all have returned.
func (l *loader) work(ctx context.Context, out io.Writer, run func(ctx context.Context, worker int)) {
	var group sync.WaitGroup
	for worker := range loadWorkers {
		group.Go(func() { run(ctx, worker) })
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()
	began, before := time.Now(), l.changes()
	report := func() {
		now := l.changes()
		fmt.Fprintf(out, "%7s  %.0f changes/s: %d created, %d patched, %d status, %d deleted, %d failed%s\n",
			elapsed(began), float64(now-before)/reportInterval.Seconds(),
			l.made.Load(), l.patched.Load(), l.statused.Load(), l.deleted.Load(), l.failed.Load(), l.takeError())
		before = now
	}
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			report()
		}
	}
}

func (l *loader) changes() int64 {
	return l.made.Load() + l.patched.Load() + l.statused.Load() + l.deleted.Load()
}

// takeError returns the last error since the previous call, for the progress line.
func (l *loader) takeError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastErr == nil {
		return ""
	}
	text := ", last: " + l.lastErr.Error()
	l.lastErr = nil
	return text
}

// fill creates the worker's missing Pods.
func (l *loader) fill(ctx context.Context, worker int) {
	for i := worker; i < len(l.slots) && ctx.Err() == nil; i += loadWorkers {
		for !l.slots[i].alive && ctx.Err() == nil {
			l.create(ctx, i)
		}
	}
}

// churn changes the worker's Pods, one change per token.
func (l *loader) churn(ctx context.Context, worker int, limit *rate.Limiter) {
	if worker >= len(l.slots) {
		return
	}
	random := rand.New(rand.NewPCG(l.options.seed, uint64(worker)))
	mine := (len(l.slots) - worker + loadWorkers - 1) / loadWorkers
	for change := 0; limit.Wait(ctx) == nil; change++ {
		i := worker + loadWorkers*random.IntN(mine)
		dice := random.IntN(100)
		switch {
		case !l.slots[i].alive:
			l.create(ctx, i)
		case dice < 45 || dice < 92 && !l.isRunning(ctx, i):
			l.count(ctx, &l.patched, i, l.patch(ctx, i, metadataPatch(random, change)))
		case dice < 92:
			l.count(ctx, &l.statused, i, l.patch(ctx, i, statusPatch(random), "status"))
		default:
			// A later change creates the slot's next Pod.
			name, namespace := l.podName(i), l.namespace(i)
			l.count(ctx, &l.deleted, i, l.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
			l.slots[i] = slot{generation: l.slots[i].generation + 1}
		}
	}
}

// isRunning reports whether a Pod has been Running; it gets the Pod until then.
func (l *loader) isRunning(ctx context.Context, i int) bool {
	if !l.slots[i].running {
		pod, err := l.client.CoreV1().Pods(l.namespace(i)).Get(ctx, l.podName(i), metav1.GetOptions{})
		l.slots[i].running = err == nil && pod.Status.Phase == corev1.PodRunning
	}
	return l.slots[i].running
}

func (l *loader) create(ctx context.Context, i int) {
	_, err := l.client.CoreV1().Pods(l.namespace(i)).Create(ctx, l.pod(i), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = nil // the answer to an earlier request was lost
	}
	l.count(ctx, &l.made, i, err)
	l.slots[i].alive = err == nil
}

func (l *loader) patch(ctx context.Context, i int, patch []byte, subresources ...string) error {
	pod, err := l.client.CoreV1().Pods(l.namespace(i)).Patch(ctx, l.podName(i), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, subresources...)
	if err == nil {
		l.slots[i].running = pod.Status.Phase == corev1.PodRunning
	}
	return err
}

// count records the outcome of one change. A fault test may kill the API server, so an
// error only costs a pause.
func (l *loader) count(ctx context.Context, successes *atomic.Int64, i int, err error) {
	switch {
	case err == nil:
		successes.Add(1)
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err) && successes != &l.made:
		// Another client deleted the Pod; the slot's next generation replaces it.
		l.slots[i] = slot{generation: l.slots[i].generation + 1}
	default:
		l.failed.Add(1)
		l.mu.Lock()
		l.lastErr = err
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// prepare creates the namespaces and the Pods' owners, and adopts the Pods of an
// earlier run.
func (l *loader) prepare(ctx context.Context, out io.Writer) error {
	nodes, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: managedByUs})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		l.nodes = append(l.nodes, node.Name)
	}
	if len(l.nodes) == 0 {
		return errors.New("the cluster has no nodes; restart it with: localcluster up --nodes 5")
	}
	for n := range l.options.namespaces {
		if err := ensureNamespace(ctx, l.client, namespaceName(n)); err != nil {
			return err
		}
		if err := l.adopt(ctx, namespaceName(n), out); err != nil {
			return err
		}
	}
	return l.makeOwners(ctx)
}

// adopt assigns the Pods of a namespace to their slots, and deletes Pods without a
// slot in this run.
func (l *loader) adopt(ctx context.Context, namespace string, out io.Writer) error {
	pods, err := l.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: managedByUs})
	if err != nil {
		return err
	}
	taken := 0
	for _, pod := range pods.Items {
		index, generation, ok := parseSlot(pod.Labels[slotLabel])
		if ok && index < len(l.slots) && l.namespace(index) == namespace && pod.DeletionTimestamp == nil {
			if s := &l.slots[index]; !s.alive && generation >= s.generation {
				*s = slot{generation: generation, alive: true}
				if l.podName(index) == pod.Name { // names differ by seed
					taken++
					continue
				}
				*s = slot{}
			}
		}
		if err := l.client.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if taken > 0 {
		fmt.Fprintf(out, "adopted %d pods in %s\n", taken, namespace)
	}
	return nil
}

// cleanup deletes the namespaces with all their objects.
func (l *loader) cleanup(ctx context.Context, out io.Writer) {
	var names []string
	for n := range l.options.namespaces {
		names = append(names, namespaceName(n))
	}
	deleteNamespaces(ctx, l.client, names, out)
}

// slotLabel has "SLOT.GENERATION" of a Pod, for adopt.
const slotLabel = "localcluster.watchkeeper.dev/slot"

func parseSlot(label string) (index, generation int, ok bool) {
	a, b, found := strings.Cut(label, ".")
	if !found {
		return 0, 0, false
	}
	index, errIndex := strconv.Atoi(a)
	generation, errGeneration := strconv.Atoi(b)
	return index, generation, errIndex == nil && errGeneration == nil && index >= 0
}
