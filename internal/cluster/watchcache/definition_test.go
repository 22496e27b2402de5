// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
)

// A definer is an API server with one definition.
type definer struct {
	code  int // 0: the server does not answer
	body  string
	asked []string
}

func (d *definer) RoundTrip(r *http.Request) (*http.Response, error) {
	d.asked = append(d.asked, r.URL.Path)
	if d.code == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: d.code, Body: io.NopCloser(strings.NewReader(d.body)), Request: r}, nil
}

// resource returns a custom resource of the definer.
func (d *definer) resource(t *testing.T) *Resource {
	t.Helper()
	up, err := upstream.New(&rest.Config{Host: "http://upstream", Transport: d}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := upstream.NewBackground()
	t.Cleanup(b.Stop)
	c := New(Options{Upstream: up, Background: b, Discovery: upstream.NewDiscovery(up, b), Logger: slog.New(slog.DiscardHandler)})
	id := kube.Resource{Group: "example.com", Version: "v1", Name: "widgets"}
	res := c.Insert(id, metav1.APIResource{Name: "widgets", Namespaced: true})
	res.watch = newWatch(c, id)
	res.watch.reader = res
	return res
}

const widgetDefinition = `{"metadata":{"uid":"u","generation":7},"spec":{"versions":[
	{"name":"v1beta1","selectableFields":[{"jsonPath":".spec.old"}]},
	{"name":"v1","selectableFields":[{"jsonPath":".spec.color"},{"jsonPath":".spec.a-b_c.d1"},{"jsonPath":".spec['x']"},{"jsonPath":".spec.*"},{"jsonPath":".."}],
	 "additionalPrinterColumns":[{"name":"Color","type":"string","jsonPath":".spec.color","priority":1},{"name":"Since","type":"date","jsonPath":".status.since"}]},
	{"name":"v2"}]}}`

// TestUndefinedOver: watches that began while the definition could not be read end
// once it can.
func TestUndefinedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &definer{code: 403}
		res := server.resource(t)
		over, ok := res.Defined(t.Context(), 1)
		if !ok || over == nil {
			t.Fatalf("Defined: %v %v, want a context and true", over, ok)
		}
		time.Sleep(11 * time.Second)
		server.code, server.body = 200, widgetDefinition
		if _, ok := res.Defined(t.Context(), 1); !ok {
			t.Error("Defined: false, want true")
		}
		<-over.Done()
	})
}

// TestTerminatingDefinition: a resource whose definition is being deleted is not
// served.
func TestTerminatingDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &definer{code: 200, body: strings.Replace(widgetDefinition, `"uid"`, `"deletionTimestamp":"2026-11-21T12:00:00Z","uid"`, 1)}
		res := server.resource(t)
		if _, ok := res.Defined(t.Context(), 1); ok {
			t.Error("served while its definition is being deleted")
		}
		time.Sleep(11 * time.Second)
		server.body = widgetDefinition // recreated
		if _, ok := res.Defined(t.Context(), 1); !ok {
			t.Error("not served with a new definition")
		}
	})
}

// TestLateList: the API server followed a change of the definition after the definition
// could be read. The watches that began with a list of before end when a list has
// other columns, although the definition is the same; after another list they do not.
func TestLateList(t *testing.T) {
	for _, code := range []int{200, 403} {
		for _, otherColumns := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				server := &definer{code: code, body: widgetDefinition}
				res := server.resource(t)
				sink := res.sink()
				list := &scan.List{Kind: "WidgetList", APIVersion: "example.com/v1", ItemKind: "Widget", RV: 5}
				sink.Replace(list, false)
				over, _ := res.Defined(t.Context(), 0)
				late := *list
				if otherColumns {
					late.Columns = `[{"name":"Color"}]`
				}
				sink.Replace(&late, false)
				synctest.Wait()
				if over.Err() != nil != otherColumns {
					t.Errorf("code %d: with other columns %v, over is closed: %v", code, otherColumns, over.Err() != nil)
				}
				if over, ok := res.Defined(t.Context(), 0); !ok || over.Err() != nil {
					t.Errorf("code %d: the watches that begin with the new list end", code)
				}
			})
		}
	}
}

// TestListRefreshesDefinition: a list refreshes a known definition.
func TestListRefreshesDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &definer{code: 200, body: widgetDefinition}
		res := server.resource(t)
		sink := &timelineSink{Timeline: res.Timeline, listed: res.listed}
		list := &scan.List{Kind: "WidgetList", APIVersion: "example.com/v1", ItemKind: "Widget", RV: 5}
		if sink.Replace(list, false); len(server.asked) > 0 {
			t.Error("the definition was read before it was used")
		}
		def, err := res.Definitions.Get(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		server.body = strings.Replace(widgetDefinition, `"uid":"u"`, `"uid":"v"`, 1)
		if !sink.Replace(list, false) {
			t.Error("the timeline does not continue")
		}
		<-def.Over.Done()
	})
}
