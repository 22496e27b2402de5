// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/clientgo/typed"
	"github.com/watchkeeper/watchkeeper/informer/informertest"
)

// An upstream is an API server of ConfigMaps.
type upstream struct {
	*informertest.Server
	network *informertest.Network

	forgetting sync.RWMutex // forget holds it; requests wait

	mu      sync.Mutex // guards the fields below
	code    int        // error status of every answer; 0 for none
	deleted []string   // pairs of texts: an object's, and its replacement in the DELETED event
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{Server: informertest.New(informertest.Options{FirstRV: 10, Resources: []informertest.Resource{informertest.ConfigMaps}})}
	u.Control(u.control)
	u.network = informertest.NewNetwork(u)
	t.Cleanup(u.network.Close)
	return u
}

func (u *upstream) control(w http.ResponseWriter, r *informertest.Request, next func(http.ResponseWriter)) {
	u.forgetting.RLock()
	//lint:ignore SA2001 it only waits
	u.forgetting.RUnlock()
	u.mu.Lock()
	code := u.code
	u.mu.Unlock()
	if code != 0 {
		informertest.WriteStatus(w, code, "", "no")
		return
	}
	next(&deletions{w, u})
}

// deletions writes watch events; a DELETED event has another last state than the event
// before it.
type deletions struct {
	http.ResponseWriter
	of *upstream
}

func (d *deletions) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *deletions) Write(b []byte) (int, error) {
	d.of.mu.Lock()
	replacer := strings.NewReplacer(d.of.deleted...)
	d.of.mu.Unlock()
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, `{"type":"DELETED"`) {
			line = replacer.Replace(line)
		}
		if _, err := d.ResponseWriter.Write([]byte(line)); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// object returns the JSON of an object with the key "namespace/name".
func (u *upstream) object(key, color, uid string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q,"uid":%q,"labels":{"color":%q}},"data":{"color":%q}}`, name, namespace, uid, color, color)
}

// put creates or changes an object.
func (u *upstream) put(key, color string) {
	u.Put("configmaps", u.object(key, color, "uid-"+key))
}

// remove deletes an object, which has the color in its last state.
func (u *upstream) remove(key, color string) {
	var last struct{ Data struct{ Color string } }
	if err := json.Unmarshal([]byte(u.Get("configmaps", key)), &last); err != nil {
		panic(err)
	}
	u.mu.Lock()
	u.deleted = []string{fmt.Sprintf(`"color":%q`, last.Data.Color), fmt.Sprintf(`"color":%q`, color)}
	u.mu.Unlock()
	u.Delete("configmaps", key)
}

// forget ends the streams, calls meanwhile and compacts: changes that meanwhile makes
// are seen only in a list.
func (u *upstream) forget(meanwhile func()) {
	u.forgetting.Lock()
	defer u.forgetting.Unlock()
	u.EndWatches()
	meanwhile()
	u.Compact(u.RV())
}

func (u *upstream) refuse(code int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.code = code
}

func (u *upstream) source() *informer.Source {
	return informer.NewSource(&url.URL{Scheme: "http", Host: "upstream"}, u.network)
}

var configMaps = informer.Resource{Version: "v1", Name: "configmaps"}

type configMap = *unstructured.Unstructured

func newTestInformer(u *upstream, indexers cache.Indexers) *Informer[configMap] {
	return New(u.source(), configMaps, typed.Unstructured(), informer.Options{}, 0, indexers)
}

// run runs the informer until stop is called, which waits for its end.
func run(t *testing.T, a *Informer[configMap]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.RunWithContext(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// A diary is an event handler that logs each call as one line.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// read returns the lines since the last call.
func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

func describe(o any) string {
	switch o := o.(type) {
	case configMap:
		color, _, _ := unstructured.NestedString(o.Object, "data", "color")
		return fmt.Sprintf("%s/%s@%s %s", o.GetNamespace(), o.GetName(), o.GetResourceVersion(), color)
	case cache.DeletedFinalStateUnknown:
		return "unseen " + o.Key + ": " + describe(o.Obj)
	}
	return fmt.Sprintf("%T", o)
}

func (d *diary) OnAdd(o any, initial bool) {
	line := "add " + describe(o)
	if initial {
		line += " initial"
	}
	d.add(line)
}
func (d *diary) OnUpdate(old, o any) { d.add("update " + describe(old) + " → " + describe(o)) }
func (d *diary) OnDelete(o any)      { d.add("delete " + describe(o)) }

var errTest = errors.New("as the test wants it")
