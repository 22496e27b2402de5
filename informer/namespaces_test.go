// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// inMemory returns an informer of an API server in memory that has the Pods ns/a and b/b.
func inMemory(t *testing.T, res Resource, opts Options) (*Informer[json.RawMessage], *informertest.Server) {
	t.Helper()
	api := informertest.New(informertest.Options{Resources: []informertest.Resource{informertest.Pods, informertest.Nodes}})
	network := informertest.NewNetwork(api)
	t.Cleanup(network.Close)
	api.Put("pods", `{"metadata":{"name":"a","namespace":"ns"}}`)
	api.Put("pods", `{"metadata":{"name":"b","namespace":"b"}}`)
	return New(NewSource(network.URL(), network), res, Raw(), opts), api
}

// TestRemoveNamespaceMeanwhile: a run that begins while a namespace is removed does not
// watch it.
func TestRemoveNamespaceMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		removing, goOn := make(chan bool, 1), make(chan bool)
		i, api := inMemory(t, pods, Options{Namespaces: []string{"ns", "b"}, Metrics: func(Collection, func() Status) Metrics {
			return Metrics{Changed: func(typ EventType) {
				if typ == Deleted {
					removing <- true
					<-goOn
				}
			}}
		}})
		d := &transcript{}
		i.Handle(Handler[json.RawMessage]{Event: func(e Event[json.RawMessage]) { d.add(describe(e)) }})
		stop := start(t, i)
		if err := i.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		removed := make(chan error)
		go func() { removed <- i.RemoveNamespace("ns") }()
		<-removing
		stop = start(t, i)
		time.Sleep(time.Second)
		close(goOn)
		if err := <-removed; err != nil {
			t.Error(err)
		}
		api.Put("pods", `{"metadata":{"name":"new","namespace":"ns"}}`)
		time.Sleep(time.Second)
		for _, line := range d.read() {
			if strings.Contains(line, "new") {
				t.Error(line)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestClusterScoped: the error of an informer that looks for Nodes in a namespace says why
// there are none.
func TestClusterScoped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := inMemory(t, Resource{Version: "v1", Name: "nodes"}, Options{Namespaces: []string{"ns"}})
		if err := i.Run(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "(nodes have no namespaces)") {
			t.Error(err)
		}
	})
}

// TestI13Again: a wait that began in a run which is refused ends with the refusal, though
// the informer runs again at once; and Status has it until the next answer.
func TestI13Again(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, api := inMemory(t, pods, Options{})
		api.Control(func(w http.ResponseWriter, _ *informertest.Request, _ func(http.ResponseWriter)) {
			informertest.WriteStatus(w, 403, "Forbidden", "no")
		})
		if err := i.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan bool)
		go func() {
			defer close(ended)
			for err := i.Wait(); t.Context().Err() == nil; err = i.Run(t.Context()) {
				if t.Context().Err() == nil && !refusedWith(403)(err) {
					t.Errorf("%v", err)
				}
			}
		}()
		for range 3 {
			began := time.Now()
			if err := i.WaitSynced(t.Context()); !refusedWith(403)(err) || time.Since(began) > 10*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			for range 10 {
				time.Sleep(time.Second)
				if s := i.Status(); s.Phase != Refused || !refusedWith(403)(s.LastError) {
					t.Errorf("%v, %v", s.Phase, s.LastError)
				}
			}
		}
		t.Cleanup(func() { <-ended })
	})
}

// TestLag: an API server that has never answered lags from the beginning of the run.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, _ := inMemory(t, pods, Options{})
		i.src.transport = answeringNothing{}
		stop := start(t, i)
		time.Sleep(5 * minute)
		if lag := i.Status().Lag; lag != 5*minute {
			t.Errorf("%v", lag)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		i, _ = inMemory(t, pods, Options{Namespaces: []string{"ns"}})
		stop = start(t, i)
		if err := i.RemoveNamespace("ns"); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * minute)
		if s := i.Status(); s.Lag != 0 || s.Phase != Watching {
			t.Errorf("without a namespace: %v, %v", s.Phase, s.Lag)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

type answeringNothing struct{}

func (answeringNothing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route")
}
