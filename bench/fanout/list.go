// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"golang.org/x/sync/errgroup"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/synthetic"
)

const pods = "/api/v1/pods"

// A listing is one form of the LIST of Pods at RV 0.
type listing struct {
	name   string
	query  string
	header map[string]string
	often  int // factor of the number of requests, larger for a fast LIST
}

var listings = []listing{
	{"json", "", nil, 1},
	{"table", "", map[string]string{"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, 1},
	{"protobuf", "", map[string]string{"Accept": "application/vnd.kubernetes.protobuf"}, 1},
	{"gzip", "", map[string]string{"Accept-Encoding": "gzip"}, 1},
	{"selector", "&labelSelector=bench%3Dgroup-7", nil, 200},
}

// lists measures the time and the server's CPU of a LIST of many Pods. The first LIST
// of each kind is not counted, since both servers cache a part of its work.
func lists(r *harness) error {
	s := r.sizes
	t, err := r.threeWithPods(s.pods)
	if err != nil {
		return err
	}
	defer t.stop()
	var failed []error
	if err := report.Sleep(r.ctx, settle); err != nil {
		return err
	}
	for round := range *rounds {
		for _, l := range listings {
			var sizes []int64
			for _, e := range t.all() {
				r.Say("round %d: %s, %s", round+1, l.name, e.via())
				n, err := r.list(e, l, s.lists)
				if err != nil {
					failed = append(failed, fmt.Errorf("%s, %s: %w", l.name, e.via(), err))
					continue
				}
				sizes = append(sizes, n)
			}
			// A gateway that sends less than the API server would seem fast.
			for _, n := range sizes {
				if l.name != "gzip" && (n < sizes[0]*99/100 || n > sizes[0]*101/100) {
					failed = append(failed, fmt.Errorf("%s: answers of %d bytes", l.name, sizes))
					break
				}
			}
		}
	}
	return errors.Join(failed...)
}

func (r *harness) list(e *endpoint, l listing, times int) (size int64, err error) {
	client, err := streams.Dial(r.ctx, e.target)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	path := pods + "?resourceVersion=0" + l.query
	if _, err := client.Get(path, l.header); err != nil {
		return 0, err
	}
	times *= l.often
	profiled := e.profile(fmt.Sprintf("%s-%s-%s", r.Scenario, l.name, e.target.Protocol), time.Second)
	clock, err := startClock(e)
	if err != nil {
		return 0, err
	}
	var walls []float64
	for range times {
		a, err := client.Get(path, l.header)
		if err != nil {
			return 0, err
		}
		size = a.Bytes
		walls = append(walls, a.Wall.Seconds())
	}
	// The measurement includes the garbage collection after the last LIST.
	if err := report.Sleep(r.ctx, settle/5); err != nil {
		return 0, err
	}
	used, err := clock.since()
	if err != nil {
		return 0, err
	}
	r.report.Add(fmt.Sprintf("List/%s/form=%s", e.via(), l.name), times,
		report.Value{Of: report.Median(walls) * 1e9, Unit: "wall-ns/op"},
		report.Value{Of: perOp(used[0], times), Unit: "cpu-ns/op"},
		report.Value{Of: float64(size), Unit: "B/op"})
	return size, profiled()
}

// threeWithPods is [harness.three] for a collection of n Pods.
func (r *harness) threeWithPods(n int) (*three, error) {
	if _, err := r.cluster(); err != nil {
		return nil, err
	}
	if err := r.createPods(n); err != nil {
		return nil, err
	}
	return r.three(pods)
}

// createPods creates Pods of 3.3 KB of JSON in the writer's namespace, unless another
// scenario has, which no scheduler handles. Every ten of them share a label.
func (r *harness) createPods(n int) error {
	if r.created {
		return nil
	}
	r.Say("creating %d Pods…", n)
	var g errgroup.Group
	g.SetLimit(maxInFlight)
	for i := range n {
		g.Go(func() error {
			if r.ctx.Err() != nil {
				return r.ctx.Err()
			}
			body, err := json.Marshal(unscheduled(i))
			if err != nil {
				return err
			}
			return r.writer.send(r.ctx, http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods", string(body))
		})
	}
	err := g.Wait()
	r.created = err == nil
	return err
}

// unscheduled returns the i-th synthetic Pod without a node, an owner and a status, so
// that no controller changes it.
func unscheduled(i int) *corev1.Pod {
	p := synthetic.Pod(i)
	p.ObjectMeta = metav1.ObjectMeta{Name: p.Name, Labels: p.Labels, Annotations: p.Annotations}
	p.Labels["bench"] = fmt.Sprintf("group-%d", i/10)
	p.Spec.NodeName, p.Spec.SchedulerName = "", "none"
	p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = "", ""
	p.Status = corev1.PodStatus{}
	return p
}
