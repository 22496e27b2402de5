// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package informers runs a client-go informer in its own process, in the form in
// which controllers and kube-state-metrics use it: typed, with client-go's defaults.
package informers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// An Order is what a process is to keep, and where. The process reads it as JSON, then
// a Command at a time, until its input ends.
type Order struct {
	Host          string
	CA, Cert, Key []byte // PEM
	Token         string
	Resource      Resource
}

// A Resource is what an informer keeps.
type Resource string

// The resources.
const (
	Pods       Resource = "pods"
	ConfigMaps Resource = "configmaps"
)

// Synced is the answer to an Order: the informer has received every object.
type Synced struct {
	Seconds float64 // since the start of the informer
	Objects int
}

// A Command updates a ConfigMap several times, each time after the handler has received
// the update before. The answer is the times from the call of Update to the handler, in
// milliseconds.
type Command struct {
	Namespace, Name string
	Updates         int
	Pause           time.Duration // after the handler's call
	Data            map[string]string
}

// patience is how long an update may take to arrive.
const patience = time.Minute

// Serve follows an Order and its Commands.
func Serve(in io.Reader, out io.Writer) error {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	var o Order
	if err := orders.Decode(&o); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: o.Host, BearerToken: o.Token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: o.CA, CertData: o.Cert, KeyData: o.Key},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	i := &informer{client: client, arrived: make(chan string, 1)}
	synced, err := i.run(ctx, o.Resource)
	if err != nil {
		return err
	}
	if err := answers.Encode(synced); err != nil {
		return err
	}
	for {
		var c Command
		if err := orders.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		lags, err := i.update(ctx, c)
		if err != nil {
			return err
		}
		if err := answers.Encode(lags); err != nil {
			return err
		}
	}
}

type informer struct {
	client  kubernetes.Interface
	arrived chan string // the mark of the newest update that the handler received; one at most
}

// mark is the key of a ConfigMap's data by which the handler knows an update.
const mark = "update"

// run starts the informer, and waits until it has every object.
func (i *informer) run(ctx context.Context, r Resource) (Synced, error) {
	core := informers.NewSharedInformerFactory(i.client, 0).Core().V1()
	var shared cache.SharedIndexInformer
	switch r {
	case Pods:
		shared = core.Pods().Informer()
	case ConfigMaps:
		shared = core.ConfigMaps().Informer()
	default:
		return Synced{}, fmt.Errorf("no resource %q", r)
	}
	handler, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) {},
		UpdateFunc: func(_, now any) { i.handle(now) },
		DeleteFunc: func(any) {},
	})
	if err != nil {
		return Synced{}, err
	}
	start := time.Now()
	go shared.RunWithContext(ctx)
	for !handler.HasSynced() {
		if time.Since(start) > 2*patience {
			return Synced{}, fmt.Errorf("%s: not synced after %v", r, 2*patience)
		}
		time.Sleep(time.Millisecond)
	}
	return Synced{time.Since(start).Seconds(), len(shared.GetStore().ListKeys())}, nil
}

func (i *informer) handle(o any) {
	c, ok := o.(*corev1.ConfigMap)
	if !ok {
		return
	}
	m := c.Data[mark]
	for m != "" {
		select {
		case i.arrived <- m:
			return
		default:
		}
		select {
		case <-i.arrived: // an earlier one, for which nothing waits
		default:
		}
	}
}

func (i *informer) update(ctx context.Context, c Command) (lags []float64, err error) {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace}, Data: map[string]string{}}
	for k, v := range c.Data {
		o.Data[k] = v
	}
	for n := range c.Updates {
		o.Data[mark] = strconv.FormatInt(time.Now().UnixNano(), 10)
		start := time.Now()
		if _, err := i.client.CoreV1().ConfigMaps(c.Namespace).Update(ctx, o, metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
		for m := ""; m != o.Data[mark]; {
			select {
			case m = <-i.arrived:
			case <-time.After(patience):
				return nil, fmt.Errorf("update %d did not reach the handler within %v", n, patience)
			}
		}
		lags = append(lags, float64(time.Since(start))/float64(time.Millisecond))
		time.Sleep(c.Pause)
	}
	return lags, nil
}
