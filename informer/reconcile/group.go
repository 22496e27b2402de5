// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
)

// An Informer is an [*informer.Informer] of objects of any type.
type Informer interface {
	Resource() informer.Resource
	Run(context.Context) error
	Status() informer.Status
	WaitSynced(ctx context.Context, namespaces ...string) error
}

// A Group runs controllers and their informers. An informer that several controllers use
// is run once.
type Group struct {
	Controllers []*Controller
	// Informers are run, too. Those of the controllers need not be named.
	Informers []Informer
	// Logger gets what the group waits for. The default discards it.
	Logger *slog.Logger
}

// Run runs the informers and the controllers until ctx ends. Then it waits for the calls
// of the controllers' functions to return, stops the informers, and returns nil.
//
// An informer that the API server refuses with 401, 403 or 404 is run again, after pauses
// that grow to 8 s: a right may be granted, and a definition may come back. Meanwhile the
// controllers use the copy that there is. After another refusal, or if an informer is
// running already, Run ends all and returns the error.
//
// Run and [Group.Waiting] panic if a controller or an informer is nil.
func (g *Group) Run(ctx context.Context) error {
	all := g.informers()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	informersCtx, stopInformers := context.WithCancel(context.WithoutCancel(ctx))
	defer stopInformers()
	var informers, controllers sync.WaitGroup
	var once sync.Once
	var failure error // the first one
	run := func(wg *sync.WaitGroup, f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				once.Do(func() { failure = err })
				fail(err)
			}
		})
	}
	for _, i := range all {
		run(&informers, func() error { return g.keepRunning(informersCtx, i) })
	}
	for _, c := range g.Controllers {
		run(&controllers, func() error { return c.Run(ctx) })
	}
	<-ctx.Done()
	controllers.Wait()
	stopInformers()
	informers.Wait()
	return failure
}

// informers returns each informer once.
func (g *Group) informers() []Informer {
	all := slices.Clone(g.Informers)
	for n, i := range all {
		if v := reflect.ValueOf(i); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			panic(fmt.Sprintf("reconcile: Informers[%d] of a Group is nil", n))
		}
	}
	for n, c := range g.Controllers {
		if c == nil {
			panic(fmt.Sprintf("reconcile: Controllers[%d] of a Group is nil", n))
		}
		for _, s := range c.sources {
			all = append(all, s.informer)
		}
	}
	seen := map[Informer]bool{}
	return slices.DeleteFunc(all, func(i Informer) bool {
		again := seen[i]
		seen[i] = true
		return again
	})
}

// keepRunning runs an informer until ctx ends, or it is refused for good.
func (g *Group) keepRunning(ctx context.Context, i Informer) error {
	log := g.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	logged := ""
	for {
		began := time.Now()
		err := i.Run(ctx) // it pauses after a refusal
		if ctx.Err() != nil {
			return nil
		}
		err = cmp.Or(err, informer.ErrStopped) // of an Informer of another type
		if !canHeal(err) {
			return fmt.Errorf("reconcile: informer of %s: %w", what(i), err)
		}
		// The same refusal again, every few seconds, is not news.
		if text := err.Error(); text != logged || time.Since(began) > time.Minute {
			log.Warn("waiting for "+what(i), "err", err)
			logged = text
		}
	}
}

// canHeal reports whether a refusal may end without a change of the program.
func canHeal(err error) bool {
	refused, ok := errors.AsType[*informer.RefusedError](err)
	return ok && slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, refused.Code)
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*informer.RefusedError](err)
	return ok
}

// refusal returns why the API server refuses an informer; nil if its last answer was
// another one.
func refusal(i Informer) error {
	s := i.Status()
	namespaces := slices.Sorted(maps.Keys(s.Refused))
	switch {
	case len(namespaces) > 0: // LastError may be that of another one
		return s.Refused[namespaces[0]]
	case isRefusal(s.LastError):
		return s.LastError
	}
	return nil
}

// Waiting returns the collections that have no complete list yet, or that the API server
// refuses, each with the reason; none if there is nothing to wait for. Any goroutine may
// call it at any time.
//
// An outage after the first list, without a refusal, is not reported: the copy is
// complete, and may be out of date. The LastError and the Lag of [informer.Status] show
// that.
func (g *Group) Waiting() []string {
	var all []string
	for _, i := range g.informers() {
		if err := cmp.Or(refusal(i), notSynced(i)); err != nil {
			all = append(all, fmt.Sprintf("%s: %v", what(i), err))
		}
	}
	return all
}

var errNoList = errors.New("there is no complete list yet")

// notSynced returns why an informer has no complete list; nil if it has one.
func notSynced(i Informer) error {
	now, cancel := context.WithCancelCause(context.Background())
	cancel(cmp.Or(i.Status().LastError, errNoList))
	return i.WaitSynced(now)
}
