// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/clients/widget"
	"github.com/watchkeeper/watchkeeper/internal/testing/clustertest"
)

const (
	ns     = "default"
	apiKey = "kube-apiserver"
	// updated and created are how many Widgets change after an outage. They are so few
	// that the rate limits, five requests a second after the first ten, delay none.
	updated, created = 5, 2
)

// A cluster is a control plane with Widgets.
type cluster struct {
	*clustertest.Cluster
	user client.Client
	n    int // makes data and names differ
}

func startCluster(ctx context.Context) (*cluster, error) {
	if err := widget.AddToScheme(scheme.Scheme); err != nil {
		return nil, err
	}
	plane, err := clustertest.Start(0, "--apiservers", "1")
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: plane}
	for _, args := range [][]string{
		{"apply", "-f", "../examples/widget/crd.yaml"},
		{"wait", "--for=condition=Established", "crd/widgets.example.com"},
	} {
		if out, kubectlErr := plane.Kubectl(ctx, args...).CombinedOutput(); kubectlErr != nil && err == nil {
			err = fmt.Errorf("kubectl %v: %w: %s", args, kubectlErr, out)
		}
	}
	if err == nil {
		c.user, err = client.New(plane.Config, client.Options{})
	}
	if err != nil {
		plane.Close()
		return nil, err
	}
	return c, nil
}

// data is about half a kilobyte that does not compress.
func (c *cluster) data() map[string]string {
	c.n++
	return newData(c.n)
}

func newData(n int) map[string]string {
	all := map[string]string{}
	for i := range 8 {
		all[fmt.Sprintf("key-%d", i)] = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, n, i)))
	}
	return all
}

func newWidget(name string, data map[string]string) *widget.Widget {
	w := &widget.Widget{Spec: widget.Spec{Data: data}}
	w.Namespace, w.Name = ns, name
	return w
}

// name is the name of one of the Widgets that fill creates.
func name(i int) string { return fmt.Sprintf("widget-%05d", i) }

// fill creates Widgets. The controller runs in this process meanwhile, without rate
// limits.
func (c *cluster) fill(ctx context.Context, n int) (err error) {
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	opts := ctrl.Options{}
	opts.Controller.SkipNameValidation = new(true) // a test may have several
	go func() { ended <- widget.Run(running, rest.CopyConfig(c.Config), opts) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	writes, writing := errgroup.WithContext(ctx)
	writes.SetLimit(8)
	for i := range n {
		writes.Go(func() error { return c.user.Create(writing, newWidget(name(i), newData(i))) })
	}
	c.n = n
	if err := writes.Wait(); err != nil {
		return err
	}
	err = until(ctx, "the ConfigMaps", 15*time.Minute, func() (bool, error) {
		if n > 1000 { // a list of all is much work
			if err := sleep(ctx, 2*time.Second); err != nil {
				return false, err
			}
		}
		var all widget.WidgetList
		if err := c.user.List(ctx, &all); err != nil {
			return false, err
		}
		for i := range all.Items {
			if !current(&all.Items[i]) {
				return false, nil
			}
		}
		return len(all.Items) == n, nil
	})
	if err != nil {
		return err
	}
	return sleep(ctx, min(time.Duration(n)*time.Millisecond, 10*time.Second)) // the control plane has work left
}

// current reports whether the status is of the present spec.
func current(w *widget.Widget) bool {
	return w.Status.Ready && w.Status.ObservedGeneration == w.Generation
}

// reconciled reports whether the ConfigMap of a Widget has the data.
func (c *cluster) reconciled(ctx context.Context, w *widget.Widget) (bool, error) {
	var m corev1.ConfigMap
	err := c.user.Get(ctx, client.ObjectKeyFromObject(w), &m)
	return maps.Equal(m.Data, w.Spec.Data), client.IgnoreNotFound(err)
}

// measure starts a program and ends it after an outage. The Widget that is new at the start
// is the last one in lists, among many that are up to date.
func (c *cluster) measure(ctx context.Context, p program, dir string, o options) (values []value, err error) {
	fresh := newWidget("zz-start", c.data())
	if err := c.user.Create(ctx, fresh); err != nil {
		return nil, err
	}
	began := time.Now()
	r, err := start(ctx, p.path(dir), c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	defer r.stop()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w; the log ends with\n%s", err, r.output())
		}
	}()
	if err := until(ctx, "the new Widget", 5*time.Minute, func() (bool, error) {
		if done, err := c.reconciled(ctx, fresh); !done || err != nil {
			return false, err
		}
		err := c.user.Get(ctx, client.ObjectKeyFromObject(fresh), fresh)
		return current(fresh), err
	}); err != nil {
		return nil, err
	}
	add := func(of float64, unit string) { values = append(values, value{Of: of, Unit: unit}) }
	add(time.Since(began).Seconds(), "ready-s")
	cpu, err := r.idle(ctx)
	if err != nil {
		return nil, err
	}
	add(cpu.Seconds(), "cpu-s")
	rss, err := process.RSS(r.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	add(rss/mega, "rss-MB")
	peak, err := process.PeakRSS(r.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	add(peak/mega, "peak-MB")
	heap, err := r.liveHeap(ctx)
	if err != nil {
		return nil, err
	}
	add(heap/mega, "heap-MB")

	var made []*widget.Widget
	if !slices.Contains(o.calm, p.name) {
		down, after, more, err := c.outage(ctx, o)
		if err != nil {
			return nil, err
		}
		made = more
		add(down.Seconds(), "down-s")
		add(after.Seconds(), "reconciled-s")
		if peak, err = process.PeakRSS(r.cmd.Process.Pid); err != nil {
			return nil, err
		}
		add(peak/mega, "peak-with-outage-MB")
	}

	// The next program begins with the same Widgets.
	for _, w := range append(made, fresh) {
		if err := c.user.Delete(ctx, w); err != nil {
			return nil, err
		}
		if err := until(ctx, "the deletion of a Widget", time.Minute, func() (bool, error) {
			err := c.user.Get(ctx, client.ObjectKeyFromObject(w), &widget.Widget{})
			return err != nil && client.IgnoreNotFound(err) == nil, client.IgnoreNotFound(err)
		}); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// outage kills the API server, starts it again and changes Widgets at the moment when it
// is ready. It returns how long it was not ready, how long it took after that until all
// ConfigMaps had the new data, and the Widgets it has created.
func (c *cluster) outage(ctx context.Context, o options) (down, after time.Duration, more []*widget.Widget, err error) {
	if err := c.Signal(apiKey, "KILL"); err != nil {
		return 0, 0, nil, err
	}
	killed := time.Now()
	if err := sleep(ctx, o.outage); err != nil {
		return 0, 0, nil, err
	}
	started := make(chan error, 1)
	go func() { started <- c.StartComponent(apiKey) }()
	err = until(ctx, "the API server", 3*time.Minute, func() (bool, error) { return c.ready(ctx) })
	readyAt := time.Now()
	var changed []*widget.Widget
	for i := range updated {
		w := newWidget(name(i*max(1, o.objects/updated)), c.data())
		if err == nil {
			err = c.retry(ctx, func() error { return c.user.Patch(ctx, w.DeepCopy(), dataPatch(w)) })
		}
		changed = append(changed, w)
	}
	for i := range created {
		w := newWidget(fmt.Sprintf("zz-new-%d", i), c.data())
		if err == nil {
			err = c.retry(ctx, func() error { return client.IgnoreAlreadyExists(c.user.Create(ctx, w.DeepCopy())) })
		}
		changed, more = append(changed, w), append(more, w)
	}
	for _, w := range changed {
		if err == nil {
			err = until(ctx, "a ConfigMap after the outage", 3*time.Minute, func() (bool, error) { return c.reconciled(ctx, w) })
		}
	}
	after = time.Since(readyAt)
	return readyAt.Sub(killed), after, more, errors.Join(err, <-started)
}

// ready reports whether the API server is ready.
func (c *cluster) ready(ctx context.Context) (bool, error) {
	httpClient, url, err := c.Client()
	if err != nil {
		return false, err
	}
	defer httpClient.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false, err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return false, err
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK, nil
}

// retry repeats a write that an API server refuses just after its start.
func (c *cluster) retry(ctx context.Context, write func() error) error {
	return until(ctx, "a change of a Widget", time.Minute, func() (bool, error) {
		err := write()
		return err == nil, err
	})
}

// dataPatch sets the data of a Widget.
func dataPatch(w *widget.Widget) client.Patch {
	without := w.DeepCopy()
	without.Spec.Data = nil
	return client.MergeFrom(without)
}
