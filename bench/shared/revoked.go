// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

const (
	// pollInterval is the time between two requests that find out when the API server
	// denies what it allowed.
	pollInterval = 5 * time.Millisecond
	// window is a little longer than the one in which the gateway asks again after a hint.
	window = 12 * time.Second
)

// revoked takes rights away from users with open watches: how long after the API server's
// own denial their watches end, and which reviews that causes.
func revoked(r *harness) error {
	if r.crowd == nil {
		if err := held(r); err != nil {
			return err
		}
	}
	defer r.leave()
	before := r.crowd.cut.Load()
	if err := r.single(); err != nil {
		return err
	}
	if n := r.crowd.cut.Load() - before; n != int64(r.sizes.single) {
		return fmt.Errorf("%d watches ended after %d users lost their right", n, r.sizes.single)
	}
	members := r.members()
	first := len(r.people) - len(members)
	c := r.crowd
	for round := range *rounds {
		if round > 0 {
			// Other connections than those of the rounds before; the gateway is the same.
			r.Say("round %d: %d watches of the group again", round+1, len(members))
			if err := r.bindGroup(); err != nil {
				return err
			}
			if _, err := r.poll(members[0], http.StatusOK); err != nil {
				return err
			}
			if err := report.Sleep(r.ctx, window); err != nil {
				return err
			}
			var err error
			if c, err = r.gather(r.front, members, 1, (*person).path); err != nil {
				return err
			}
			defer c.close()
			first = 0
			if err := report.Sleep(r.ctx, window); err != nil {
				return err
			}
		}
		r.Say("round %d: the binding of a group of %d", round+1, len(members))
		if err := r.whole(c, first); err != nil {
			return err
		}
	}
	return r.bindGroup()
}

// single deletes the RoleBindings of single users, one after the other.
func (r *harness) single() error {
	n := r.sizes.single
	r.Say("the bindings of %d users", n)
	log, err := r.auditEnd()
	if err != nil {
		return err
	}
	var lags []float64
	deleted := map[string]time.Time{}
	own := (len(r.people) - len(r.members())) / n // users between two of them
	start := time.Now()
	for i := range n {
		user := (i+1)*own - 1
		p := r.people[user]
		deleted[p.username()] = time.Now()
		if err := r.admin.RbacV1().RoleBindings(p.namespace).Delete(r.ctx, p.name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		denied, err := r.poll(p, http.StatusForbidden)
		if err != nil {
			return err
		}
		ended, err := r.crowd.end(user)
		if err != nil {
			return fmt.Errorf("%s: %w", p.username(), err)
		}
		lags = append(lags, ended[0].Sub(denied).Seconds())
	}
	if err := report.Sleep(r.ctx, time.Until(start.Add(window))); err != nil { // for the rate of the others
		return err
	}
	return r.told("Revoked/of=user", lags, log, deleted, time.Since(start))
}

// whole deletes the ClusterRoleBinding of the group, whose watches are those from first
// on.
func (r *harness) whole(c *crowd, first int) error {
	members := r.members()
	log, err := r.auditEnd()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := r.admin.RbacV1().ClusterRoleBindings().Delete(r.ctx, role, metav1.DeleteOptions{}); err != nil {
		return err
	}
	denied, err := r.poll(members[0], http.StatusForbidden)
	if err != nil {
		return err
	}
	var lags []float64
	deleted := map[string]time.Time{}
	for i, p := range members {
		ended, err := c.end(first + i)
		if err != nil {
			return fmt.Errorf("%s: %w", p.username(), err)
		}
		lags = append(lags, ended[0].Sub(denied).Seconds())
		deleted[p.username()] = start
	}
	if err := report.Sleep(r.ctx, time.Until(start.Add(window))); err != nil {
		return err
	}
	return r.told("Revoked/of=group", lags, log, deleted, time.Since(start))
}

// told reports the lags, and the reviews of those who lost their right and of the others.
func (r *harness) told(name string, lags []float64, log int64, deleted map[string]time.Time, took time.Duration) error {
	reviews, err := r.audited(log)
	if err != nil {
		return err
	}
	theirs, others := 0, 0
	for _, v := range reviews {
		switch at, concerned := deleted[v.user]; {
		case !concerned:
			others++
		case v.at.After(at):
			theirs++
		}
	}
	rest := len(r.people) - len(deleted)
	r.report.Add(name, len(lags),
		report.Value{Of: report.Percentile(lags, 50), Unit: "p50-s"},
		report.Value{Of: report.Percentile(lags, 99), Unit: "p99-s"},
		report.Value{Of: slices.Max(lags), Unit: "max-s"},
		report.Value{Of: float64(theirs) / float64(len(deleted)), Unit: "accessreviews/user-concerned"},
		report.Value{Of: float64(others) / took.Minutes() / float64(rest), Unit: "accessreviews/min/other"})
	return nil
}

// poll lists ConfigMaps at the API server as a user, until the answer has a status. It
// returns when the first request with that answer was sent.
func (r *harness) poll(p *person, status int) (time.Time, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: r.api.target.TLS, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(r.ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.api.debugURL+p.path()+"?limit=1&resourceVersion=0", nil)
	if err != nil {
		return time.Time{}, err
	}
	for name, value := range p.header() {
		req.Header.Set(name, value)
	}
	for ; ; time.Sleep(pollInterval) {
		sent := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			return sent, fmt.Errorf("waiting for status %d of the API server: %w", status, err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode == status {
			return sent, err
		}
	}
}
