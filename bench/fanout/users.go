// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/watchkeeper/watchkeeper/bench/lib/informers"
	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/report"
)

// users measures what people and programs have of the API server and of the gateway: how
// long a change takes from a client's PUT to an informer's handler, how long kubectl takes
// to print all Pods, and what an informer of all Pods takes, as in kube-state-metrics. All
// requests of a client go to the same server, the PUTs too.
func users(r *harness) error {
	s := r.sizes
	t, err := r.threeWithPods(s.pods)
	if err != nil {
		return err
	}
	defer t.stop()
	at := []*endpoint{t.direct, t.secure}
	for _, e := range at {
		if err := e.warm(r.ctx, configMaps); err != nil {
			return err
		}
	}
	orders := make([]informers.Order, len(at))
	config := rest.CopyConfig(r.real.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return err
	}
	orders[0] = informers.Order{Host: config.Host, CA: config.CAData, Cert: config.CertData, Key: config.KeyData, Token: config.BearerToken}
	ca, _, err := r.keys()
	if err != nil {
		return err
	}
	orders[1] = informers.Order{Host: "https://" + t.secure.target.Address}
	if orders[1].CA, err = os.ReadFile(ca); err != nil {
		return err
	}
	kubeconfig := []string{r.real.Kubeconfig(), filepath.Join(r.work, "kubeconfig")}
	if err := writeKubeconfig(kubeconfig[1], orders[1].Host, ca, orders[0].Cert, orders[0].Key); err != nil {
		return err
	}

	var failed []error
	for i, e := range at {
		// The gateway encodes objects in protobuf when they are requested so, once.
		if err := r.informer("FirstInformer", e, orders[i]); err != nil {
			return err
		}
	}
	for round := range *rounds {
		for i, e := range at {
			for _, one := range []struct {
				what string
				run  func() error
			}{
				{"from a PUT to the handler", func() error { return r.handled(e, orders[i]) }},
				{"kubectl get pods", func() error { return r.kubectl(e, kubeconfig[i]) }},
				{"an informer of Pods", func() error { return r.informer("Informer", e, orders[i]) }},
			} {
				r.Say("round %d: %s, %s", round+1, one.what, e.via())
				if err := one.run(); err != nil {
					failed = append(failed, fmt.Errorf("%s, %s: %w", one.what, e.via(), err))
				}
			}
		}
	}
	return errors.Join(failed...)
}

// writeKubeconfig writes a kubeconfig. It has a certificate, which the gateway does not ask
// for, as kubectl asks for a name and a password otherwise.
func writeKubeconfig(file, server, ca string, cert, key []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["gateway"] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: ca}
	config.AuthInfos["anyone"] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["gateway"] = &clientcmdapi.Context{Cluster: "gateway", AuthInfo: "anyone"}
	config.CurrentContext = "gateway"
	return clientcmd.WriteToFile(*config, file)
}

// handled measures the time from a PUT of a ConfigMap to the handler of an informer of all
// ConfigMaps in the same process. One update follows the other.
func (r *harness) handled(e *endpoint, o informers.Order) error {
	o.Resource = informers.ConfigMaps
	p, err := informers.StartSelf(o, "-informer")
	if err != nil {
		return err
	}
	defer p.Stop()
	n := r.sizes.puts
	lags, err := p.Update(informers.Command{
		Namespace: namespace, Name: "config-0", Updates: n, Pause: 10 * time.Millisecond,
		Data: map[string]string{"settings": filler(payload)},
	})
	if err != nil {
		return err
	}
	r.report.Add("Handled/"+e.via(), n,
		report.Value{Of: report.Percentile(lags, 50), Unit: "p50-ms"},
		report.Value{Of: report.Percentile(lags, 99), Unit: "p99-ms"})
	return nil
}

// kubectl measures kubectl get pods -A. Its first run, which is not counted, fills its
// cache of the API's documents.
func (r *harness) kubectl(e *endpoint, kubeconfig string) error {
	cache, err := os.MkdirTemp("", "bench-fanout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	get := func() (wall, cpu time.Duration, err error) {
		cmd := r.real.Kubectl(r.ctx, "get", "pods", "-A", "--kubeconfig", kubeconfig, "--cache-dir", cache)
		var out, complaint bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaint
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return 0, 0, fmt.Errorf("kubectl: %w: %s", err, bytes.TrimSpace(complaint.Bytes()))
		}
		wall = time.Since(start)
		if lines := bytes.Count(out.Bytes(), []byte{'\n'}); lines < r.sizes.pods+1 {
			return 0, 0, fmt.Errorf("kubectl printed %d lines of %d Pods", lines, r.sizes.pods)
		}
		return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
	}
	if _, _, err := get(); err != nil {
		return err
	}
	if err := report.Sleep(r.ctx, settle/5); err != nil {
		return err
	}
	clock, err := startClock(e)
	if err != nil {
		return err
	}
	var walls, cpus []float64
	for range r.sizes.lists {
		wall, cpu, err := get()
		if err != nil {
			return err
		}
		walls, cpus = append(walls, float64(wall)), append(cpus, float64(cpu))
	}
	if err := report.Sleep(r.ctx, settle/5); err != nil {
		return err
	}
	used, err := clock.since()
	if err != nil {
		return err
	}
	r.report.Add("Kubectl/"+e.via(), len(walls),
		report.Value{Of: report.Median(walls), Unit: "wall-ns/op"},
		report.Value{Of: report.Median(cpus), Unit: "kubectl-cpu-ns/op"},
		report.Value{Of: perOp(used[0], len(walls)), Unit: "cpu-ns/op"})
	return nil
}

// informer measures an informer of all Pods, from its start until it has them.
func (r *harness) informer(name string, e *endpoint, o informers.Order) error {
	o.Resource = informers.Pods
	clock, err := startClock(e)
	if err != nil {
		return err
	}
	p, err := informers.StartSelf(o, "-informer")
	if err != nil {
		return err
	}
	defer p.Stop()
	if p.Synced.Objects < r.sizes.pods {
		return fmt.Errorf("the informer has %d Pods of %d", p.Synced.Objects, r.sizes.pods)
	}
	cpu, err := process.CPU(p.PID)
	if err != nil {
		return err
	}
	peak, err := process.PeakRSS(p.PID)
	if err != nil {
		return err
	}
	if err := report.Sleep(r.ctx, settle/5); err != nil {
		return err
	}
	used, err := clock.since()
	if err != nil {
		return err
	}
	r.report.Add(name+"/"+e.via(), p.Synced.Objects,
		report.Value{Of: p.Synced.Seconds * 1e9, Unit: "wall-ns/op"},
		report.Value{Of: float64(cpu), Unit: "client-cpu-ns/op"},
		report.Value{Of: peak, Unit: "client-rss-B"},
		report.Value{Of: float64(used[0]), Unit: "cpu-ns/op"})
	return nil
}
