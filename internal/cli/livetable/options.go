// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cli/livetable/feed"
)

// A Watch is one live table.
type Watch struct {
	// Title names the resource where there are no rows that do: "pods", "deployments.apps".
	Title string
	// NamePrefix stands before names, "deployment.apps/", as kubectl prints several resources.
	NamePrefix string
	// Base is the URL of the API server, or of a gateway, and Transport reaches it with
	// credentials. If Transport is a reflector.Freshener or an *http.Transport, a dead
	// connection is replaced by a new one.
	Base      *url.URL
	Transport http.RoundTripper
	// Resource is what is listed and watched, in Namespace or, with "", in all of them.
	// AllNamespaces in Options only adds the column, for resources that are Namespaced.
	Resource   kube.Resource
	Namespaced bool
	Namespace  string
	// Names are those of the objects to show; empty shows all. With one name, only that
	// object is watched.
	Names                        []string
	LabelSelector, FieldSelector string
}

func (w *Watch) collection() feed.Collection {
	c := feed.Collection{Base: w.Base, Transport: w.Transport, Resource: w.Resource, Namespace: w.Namespace, LabelSelector: w.LabelSelector, FieldSelector: w.FieldSelector}
	if len(w.Names) == 1 {
		c.FieldSelector = strings.TrimPrefix(c.FieldSelector+",metadata.name="+w.Names[0], ",")
	}
	return c
}

// keep returns which objects are shown, nil for all.
func (w *Watch) keep() func(kube.Key) bool {
	if len(w.Names) == 0 {
		return nil
	}
	return func(k kube.Key) bool { return slices.Contains(w.Names, k.Name()) }
}

// Options configure [Run]. Watches are required.
type Options struct {
	Watches []Watch
	// In and Out are the terminal; nil is standard input and output.
	In, Out *os.File
	// NoHeaders, ShowLabels, Wide, AllNamespaces, LabelColumns and SortBy (a JSONPath) are
	// those of kubectl get.
	NoHeaders, ShowLabels, Wide, AllNamespaces bool
	LabelColumns                               []string
	SortBy                                     string
	// Plain prints a line in words for each change, and never moves the cursor: for screen
	// readers. It is implied if Out is no terminal, or TERM is dumb.
	Plain bool
	// NoColor marks changes by characters. It is implied by the variable NO_COLOR.
	NoColor bool
	// At is a moment to begin with, as kube.ParseMoment reads it; "" is now. From there the
	// table plays at Speed, a multiple of real time, until it has caught up with the present,
	// which it never does at 1. 0 is DefaultSpeed. At needs History.
	At    string
	Speed float64
	// History finds changes of the past; nil if the server has none. The Base of each Watch
	// then has to serve /at/<when>. [Gateway] implements it.
	History History
	// Details tell about an object; nil for nothing but the table. [ObjectDetails] implements it.
	Details Details
}

// DefaultSpeed plays ten minutes in one.
const DefaultSpeed = 10

// A History knows when something has changed.
type History interface {
	// Now returns the server's present. That of a recording which has ended is its end; there
	// is nothing to watch then.
	Now(ctx context.Context) (at time.Time, ended bool, err error)
	// Step returns the time of the next change after a time, or of the last one before it,
	// in resources such as "pods" and "deployments.apps", and in a namespace, or in all with
	// "". ok is false if there is none. A time has milliseconds.
	Step(ctx context.Context, resources []string, namespace string, from time.Time, forward bool) (at time.Time, ok bool, err error)
}

// An Object is one of a table's objects.
type Object struct {
	Watch           *Watch
	Namespace, Name string
	// At is the moment that the table shows, as in /at/<when>; "" is now.
	At string
}

// Details tell about an object. Their methods may take long, and are called by several
// goroutines.
type Details interface {
	// Tabs returns the names of what there is: "describe", "yaml", "versions", "diff".
	Tabs(Object) []string
	// Text returns what is in a tab. It may have any characters.
	Text(ctx context.Context, o Object, tab string) (string, error)
	// Logs returns the log of a Pod, which goes on until ctx ends.
	Logs(ctx context.Context, o Object) (io.ReadCloser, error)
}

// check completes the options.
func (o *Options) check() error {
	if len(o.Watches) == 0 {
		return errors.New("nothing to watch")
	}
	for i, w := range o.Watches {
		if w.Base == nil || w.Transport == nil || w.Resource.Name == "" {
			return fmt.Errorf("watch %d has no Base, Transport or Resource", i)
		}
	}
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Speed <= 0 {
		o.Speed = DefaultSpeed
	}
	if o.At != "" {
		if o.History == nil {
			return errors.New("a moment needs a gateway with a history: use --server")
		}
		if _, err := kube.ParseMoment(o.At, time.Now()); err != nil {
			return err
		}
	}
	o.NoColor = o.NoColor || os.Getenv("NO_COLOR") != ""
	o.Plain = o.Plain || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(o.Out.Fd()))
	return nil
}

// isASCII reports whether the locale has no UTF-8.
func isASCII() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return true
}

// Run shows the tables until the user quits or ctx ends. It returns an error if the options
// are wrong, or if the API server refuses all resources before it has listed any.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Plain {
		return runPlain(ctx, o)
	}
	return runTerminal(ctx, o)
}
