// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

const (
	// ballast is the number of objects of the hostile user's lists, 8 MB. They are ServiceAccounts,
	// which do not change: the cache can answer such a list only after a proof that it is fresh.
	ballast          = 2000
	ballastNamespace = "shared-ballast"
	// teams is how many users there are at most, of whom the first is hostile.
	teams = 30
	// pace is the time between two lists of another user, and between two updates.
	pace = 250 * time.Millisecond
)

// hostile measures what users get while one of them does what it can, and while it does not:
// each lists the ConfigMaps of its namespace four times a second, and watches them.
func hostile(r *harness) error {
	if err := r.up(false); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	crew := r.members()
	crew = crew[:min(len(crew), teams)]
	front, err := r.gateway("--shared", "--cert-dir", r.work, "--kubeconfig", r.kubeconfig(), "--data-dir", filepath.Join(r.work, "data"), "--record", "core,serviceaccounts")
	if err != nil {
		return err
	}
	defer front.stop()
	if err := front.warm(r.ctx, everywhere(nil)+"?resourceVersion=0", crew[0].header()); err != nil {
		return err
	}
	for round := range *rounds {
		var calm *teamwork
		for _, with := range []string{"no", "yes"} {
			r.Say("round %d: %d users; hostile: %s", round+1, len(crew)-1, with)
			ctx, cancel := context.WithCancel(r.ctx)
			attack := func() (int, error) { return 0, nil }
			if with == "yes" {
				attack = startAttack(ctx, victim{front.target.Address, filepath.Join(r.work, "ca.crt"), crew[0].token})
			}
			profiled := front.profile("hostile-"+with, r.sizes.span)
			w, err := r.observe(ctx, front, crew[1:])
			cancel()
			answered, failed := attack()
			if err = errors.Join(err, failed); err == nil {
				err = profiled()
			}
			if err != nil {
				return err
			}
			name := "Hostile/with=" + with
			r.report.Add(name, len(w.lists), append(w.values(), report.Value{Of: float64(answered), Unit: "hostile-answers"})...)
			if with == "no" {
				calm = w
				continue
			}
			peak, err := process.PeakRSS(front.pid)
			if err != nil {
				return err
			}
			r.report.Add("HostileShare", len(w.lists),
				report.Value{Of: report.Percentile(w.lists, 99) / report.Percentile(calm.lists, 99), Unit: "p99-of-calm"},
				report.Value{Of: w.used.api.Seconds() / calm.used.api.Seconds(), Unit: "upstream-cpu-of-calm"},
				report.Value{Of: peak, Unit: "rss-B"})
		}
	}
	return nil
}

// load creates what the lists of the hostile user have, and its rights to them and to exports.
func (r *harness) load() error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ballastNamespace}}
	if _, err := r.admin.CoreV1().Namespaces().Create(r.ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := r.each(ballast, func(ctx context.Context, i int) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("ballast-", i), Annotations: map[string]string{"ballast": filler}}}
		_, err := r.admin.CoreV1().ServiceAccounts(ballastNamespace).Create(ctx, account, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	const past = "bench-past"
	if _, err := r.admin.RbacV1().ClusterRoles().Create(r.ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: past},
		Rules: []rbacv1.PolicyRule{
			{NonResourceURLs: []string{"/watchkeeper/v1/history"}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"list"}},
		},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = r.admin.RbacV1().ClusterRoleBindings().Create(r.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: past},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: past},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group()}},
	}, metav1.CreateOptions{})
	return err
}

// A team is the client of one user, with its own connection.
type team struct {
	person *person
	client *http.Client
	url    string
}

func newTeam(at *endpoint, p *person) *team {
	t := &http.Transport{TLSClientConfig: at.target.TLS.Clone(), ForceAttemptHTTP2: true}
	return &team{p, &http.Client{Transport: t}, "https://" + at.target.Address}
}

func (t *team) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+t.person.token)
	return t.client.Do(req)
}

// teamwork is what the other users got.
type teamwork struct {
	mu      sync.Mutex
	lists   []float64 // how long each took, in seconds
	late    []float64 // of each event, after the update was answered
	refused int       // answers other than 200
	cut     int       // watches
	used    reading
}

func (w *teamwork) values() []report.Value {
	return []report.Value{
		{Of: report.Percentile(w.lists, 50), Unit: "list-p50-s"}, {Of: report.Percentile(w.lists, 99), Unit: "list-p99-s"},
		{Of: report.Percentile(w.late, 50), Unit: "event-p50-s"}, {Of: report.Percentile(w.late, 100), Unit: "event-max-s"},
		{Of: float64(w.refused), Unit: "refused"}, {Of: float64(w.cut), Unit: "cut"},
		{Of: w.used.api.Seconds() / w.used.took.Seconds() * 100, Unit: "upstream-cpu-%"},
		{Of: w.used.front.Seconds() / w.used.took.Seconds() * 100, Unit: "gateway-cpu-%"},
	}
}

// observe lets users work for a span, while a ConfigMap of their namespace is updated.
func (r *harness) observe(ctx context.Context, front *endpoint, crew []*person) (*teamwork, error) {
	if err := report.Sleep(ctx, settle); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.sizes.span)
	defer cancel()
	w := &teamwork{}
	var answered sync.Map // when the update to a value was answered, by value
	m, err := r.meter(front)
	if err != nil {
		return nil, err
	}
	var working sync.WaitGroup
	for i, p := range crew {
		t := newTeam(front, p)
		working.Go(func() { t.watch(ctx, w, &answered) })
		working.Go(func() {
			time.Sleep(pace * time.Duration(i) / time.Duration(len(crew)))
			for ; ctx.Err() == nil; time.Sleep(pace) {
				t.list(ctx, w)
			}
		})
	}
	for ; ctx.Err() == nil; time.Sleep(pace) {
		if err := r.update(crew[0].namespace, 0); err != nil {
			return nil, err
		}
		answered.Store(strconv.Itoa(r.serial), time.Now())
	}
	working.Wait()
	w.used, err = m.read()
	return w, err
}

func (t *team) list(ctx context.Context, w *teamwork) {
	start := time.Now()
	resp, err := t.get(ctx, t.person.path())
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	took := time.Since(start)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || resp.StatusCode != http.StatusOK {
		w.refused++
	}
	w.lists = append(w.lists, took.Seconds())
}

// watch measures how late events are.
func (t *team) watch(ctx context.Context, w *teamwork, answered *sync.Map) {
	resp, err := t.get(ctx, t.person.path()+fromNow)
	if err == nil {
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for resp.StatusCode == http.StatusOK && lines.Scan() {
			_, value, _ := strings.Cut(lines.Text(), `"value":"`)
			value, _, _ = strings.Cut(value, `"`)
			if at, ok := answered.Load(value); ok {
				w.mu.Lock()
				w.late = append(w.late, max(0, time.Since(at.(time.Time)).Seconds()))
				w.mu.Unlock()
			}
		}
	}
	if ctx.Err() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cut++
	}
}
