// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

const (
	idleNamespace = "bench-idle"
	idleObjects   = 900 // Secrets; a cluster has some of its own
	startsOf      = 40  // of each server, in a round
)

// starting measures what an informer waits for when it starts: the end bookmark of a streaming
// list without an RV, of a resource that does not change, right after a write to another one.
// The gateway is in local mode.
func starting(r *harness) error {
	if err := r.up(false); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: idleNamespace}}
	if _, err := r.admin.CoreV1().Namespaces().Create(r.ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := r.each(idleObjects, func(ctx context.Context, i int) error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("idle-", i)}, Data: map[string][]byte{"settings": []byte(filler)}}
		_, err := r.admin.CoreV1().Secrets(idleNamespace).Create(ctx, secret, metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	made, err := r.shared() // the certificate of local
	if err != nil {
		return err
	}
	made.stop()
	front, err := r.local()
	if err != nil {
		return err
	}
	defer front.stop()
	transport := &http.Transport{TLSClientConfig: front.target.TLS.Clone(), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	servers := []struct {
		name   string
		client *http.Client
		url    string
	}{{"direct", r.api.debug, r.api.debugURL}, {"gateway", &http.Client{Transport: transport}, "https://" + front.target.Address}}
	for round := range *rounds {
		for _, resource := range []string{"namespaces", "secrets"} {
			took := map[string][]float64{}
			for i := range startsOf + 1 {
				for _, s := range servers {
					time.Sleep(100*time.Millisecond + rand.N(100*time.Millisecond)) // an API server waits for etcd in steps of 100 ms
					if err := r.update(r.people[0].namespace, 0); err != nil {
						return err
					}
					d, err := start(r.ctx, s.client, s.url+"/api/v1/"+resource)
					if err != nil {
						return err
					}
					if i > 0 { // the first one starts the gateway's watch
						took[s.name] = append(took[s.name], 1000*d.Seconds())
					}
				}
			}
			r.Say("round %d: started %d times with the %s", round+1, startsOf, resource)
			for _, s := range servers {
				r.report.Add("Start/of="+resource+"/from="+s.name, startsOf,
					report.Value{Of: report.Percentile(took[s.name], 50), Unit: "p50-ms"},
					report.Value{Of: report.Percentile(took[s.name], 99), Unit: "p99-ms"})
			}
		}
	}
	return nil
}

// start returns how long the end bookmark of a streaming list takes.
func start(ctx context.Context, client *http.Client, url string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		url+"?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", nil)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for in := bufio.NewReader(resp.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("%s: no end bookmark: %w", resp.Status, err)
		}
		if strings.Contains(line, metav1.InitialEventsAnnotationKey) {
			return time.Since(began), nil
		}
	}
}
