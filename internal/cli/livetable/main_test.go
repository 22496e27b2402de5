// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi"
	"github.com/watchkeeper/watchkeeper/internal/testing/fakeapi/fakeprocess"
)

var update = flag.Bool("update", false, "write the goldens")

// A command is what the test binary shows if the variable LIVETABLE has it as JSON, in place
// of tests: a terminal needs its own process. To try the package by hand:
//
//	go test -c -o /tmp/livetable ./internal/cli/livetable
//	LIVETABLE='{"Server":"http://127.0.0.1:8001","Resources":["apps/v1/deployments","v1/pods"],"Gateway":true}' /tmp/livetable
type command struct {
	Server    string
	Resources []string // v1/pods, apps/v1/deployments
	Namespace string
	Gateway   bool // Server has a history
	Prefix    bool // names have the kind before them
	livetable.Options
}

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" { // the API server of benchmarks
		if err := serve(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	text := os.Getenv("LIVETABLE")
	if text == "" {
		code := m.Run()
		stopDemo()
		os.Exit(code)
	}
	if err := show(text); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// serve is a process with Pods of which each change shows in a cell.
func serve(pods string) error {
	n, err := strconv.Atoi(pods)
	if err != nil {
		return err
	}
	api := fakeapi.New(fakeapi.Options{Population: fakeapi.Population{Pods: n, Nodes: 100, Formats: []fakeapi.Format{fakeapi.Table}}})
	api.Control(func(w http.ResponseWriter, r *fakeapi.Request, next func(http.ResponseWriter)) {
		if r.Verb == "watch" {
			w = &restarting{ResponseWriter: w}
		}
		next(w)
	})
	plain, _, stop, err := fakeapi.Listen(fakeprocess.Handler(api))
	if err != nil {
		return err
	}
	defer stop()
	if err := json.NewEncoder(os.Stdout).Encode(map[string]fakeapi.Address{"http": plain}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A restarting writer counts restarts up in the rows of Pods that pass.
type restarting struct {
	http.ResponseWriter
	n int
}

func (r *restarting) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *restarting) Write(frames []byte) (int, error) {
	old := []byte(`"Running","0","5d"`)
	var out []byte
	for rest := frames; ; r.n++ {
		i := bytes.Index(rest, old)
		if i < 0 {
			out = append(out, rest...)
			break
		}
		out = fmt.Appendf(append(out, rest[:i]...), `"Running","%d","5d"`, r.n%10)
		rest = rest[i+len(old):]
	}
	_, err := r.ResponseWriter.Write(out)
	return len(frames), err
}

func show(text string) error {
	var c command
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	return livetable.Run(context.Background(), o)
}

func (c *command) options() (livetable.Options, error) {
	base, err := url.Parse(c.Server)
	if err != nil {
		return livetable.Options{}, err
	}
	o := c.Options
	transport := http.DefaultTransport
	for _, r := range c.Resources {
		parts := strings.Split(r, "/")
		w := livetable.Watch{Base: base, Transport: transport, Namespaced: true, Namespace: c.Namespace}
		w.Resource = kube.Resource{Version: parts[0], Name: parts[len(parts)-1]}
		if len(parts) == 3 {
			w.Resource = kube.Resource{Group: parts[0], Version: parts[1], Name: parts[2]}
		}
		w.Title = w.Resource.GroupResource()
		if c.Prefix {
			singular := strings.TrimSuffix(w.Resource.Name, "s")
			w.NamePrefix = strings.TrimSuffix(singular+"."+w.Resource.Group, ".") + "/"
		}
		o.Watches = append(o.Watches, w)
	}
	gateway := &livetable.Gateway{Base: base, Transport: transport}
	details := &livetable.ObjectDetails{}
	if c.Gateway {
		o.History, details.Gateway = gateway, gateway
	}
	o.Details = details
	return o, nil
}
