// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/status"
	"github.com/watchkeeper/watchkeeper/internal/record/history"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// syncTimeout bounds how long a read waits until the events that the gateway saw
// before it are recorded.
const syncTimeout = 5 * time.Second

// ErrUnwatched: a resource is not recorded now because it is not watched, though the API server
// answers.
var ErrUnwatched = errors.New("it is not watched")

// A SilentError is why nothing newer of a resource is recorded: it was not observed since a time,
// which is before the head if a watch was behind.
type SilentError struct {
	Since time.Time
	Err   error
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("%v since %s", e.Err, e.Since.UTC().Format(time.RFC3339))
}

func (e *SilentError) Unwrap() error { return e.Err }

// KnownUntil returns until when a resource is known whose record has a head, and of which
// [Past.Sync] has said why nothing newer is recorded.
func KnownUntil(head time.Time, unsynced error) time.Time {
	if silent, ok := errors.AsType[*SilentError](unsynced); ok && silent.Since.Before(head) {
		return silent.Since
	}
	return head
}

// A Record gives access to a history store: a recorder's, or that of a .wkr file.
type Record interface {
	// Store returns the store; nil while nothing is recorded.
	Store() *history.Store
	// Sync waits until the store has all events of the resource that the gateway
	// had seen at the call. It fails if that cannot happen.
	Sync(ctx context.Context, r kube.Resource) error
	// Now returns the time by the clock of the recorded times.
	Now() time.Time
	// Ended reports whether nothing more is recorded.
	Ended() bool
	// Withholds reports whether the record of a resource must not be shown.
	Withholds(r kube.Resource) bool
	// Continued returns the newest recorded epoch of a resource if an epoch of its
	// timeline continues it, otherwise nil. RVs do not show that: after a restore of
	// etcd, both may have the same ones. The result holds as long as the timeline is
	// at that epoch.
	Continued(r kube.Resource, live *timeline.Timeline, epoch uint64) *history.Stream
	// Missing returns why a resource that is selected has no record yet; "" if it is not
	// selected.
	Missing(r kube.Resource) string
}

// Recording is the Record of a .wkr file. Nothing is added to it.
type Recording struct {
	History *history.Store
	// Slack is how much earlier than the others the record of a resource may end that was
	// observed to the end.
	Slack time.Duration
}

var errShorter = errors.New("the recording has nothing later of them")

// Store implements Record.
func (r Recording) Store() *history.Store { return r.History }

// Sync implements Record. It fails for a resource that was not observed to the end.
func (r Recording) Sync(_ context.Context, id kube.Resource) error {
	end := endOf(r.History)
	for _, st := range r.History.Streams(id) {
		if len(st.ClockSteps()) > 0 || end.Sub(st.Head().At) <= r.Slack {
			return nil
		}
	}
	return errShorter
}

// Now implements Record.
func (Recording) Now() time.Time { return time.Now() }

// Ended implements Record.
func (Recording) Ended() bool { return true }

// Withholds implements Record.
func (Recording) Withholds(kube.Resource) bool { return false }

// Continued implements Record.
func (Recording) Continued(kube.Resource, *timeline.Timeline, uint64) *history.Stream { return nil }

// Missing implements Record.
func (Recording) Missing(kube.Resource) string { return "" }

// Past reads a Record. A nil *Past has no store, no resources, and refuses each of them
// with [Past.NotRecorded].
type Past struct {
	// Lists limits the whole lists that are in memory at a time.
	Lists *Limiter
	// CatchUp makes the gateway see everything that the upstream has of a resource at
	// the call, so that Sync records it. It is nil without an upstream.
	CatchUp func(context.Context, kube.Resource) error
	// Lacks reports whether the upstream is known not to serve a resource; nil if nothing
	// is known.
	Lacks func(kube.Resource) bool
	// Only is the namespace of a recording that has no other; "" for all.
	Only string

	record     Record
	background *upstream.Background
	log        *slog.Logger
}

// New returns a Past that reads a Record.
func New(record Record, b *upstream.Background, log *slog.Logger) *Past {
	return &Past{record: record, background: b, log: log, Lists: NewLimiter("list", maxLists, listWait)}
}

// Store returns the store, nil if nothing is recorded.
func (p *Past) Store() *history.Store {
	if p == nil {
		return nil
	}
	return p.record.Store()
}

// Present returns the time from which ages count back: the end of a finished recording,
// otherwise now. It is not before what is recorded because the clock went back a little.
func (p *Past) Present() time.Time {
	if p != nil && p.record.Ended() {
		return p.End()
	}
	now, behind := p.Now(), time.Duration(0)
	for _, id := range p.Resources() {
		if st := p.Newest(id); st != nil { // else it is withheld
			behind = max(behind, st.Behind(now))
		}
	}
	return now.Add(behind)
}

// Now returns the time by the clock of the recorded times.
func (p *Past) Now() time.Time {
	if p == nil {
		return time.Now()
	}
	return p.record.Now()
}

// Resources returns the recorded resources.
func (p *Past) Resources() []kube.Resource {
	if s := p.Store(); s != nil {
		return s.Resources()
	}
	return nil
}

// Withholds reports whether the record of a resource must not be shown.
func (p *Past) Withholds(id kube.Resource) bool { return p.record.Withholds(id) }

// End returns the time of the newest recorded state of all resources.
func (p *Past) End() time.Time {
	if s := p.Store(); s != nil {
		return endOf(s)
	}
	return time.Time{}
}

func endOf(s *history.Store) (end time.Time) {
	for _, id := range s.Resources() {
		for _, st := range s.Streams(id) {
			if at := st.Head().At; at.After(end) {
				end = at
			}
		}
	}
	return end
}

// Streams returns the recorded epochs of a resource in all its API versions, the oldest first;
// none if the resource is withheld.
func (p *Past) Streams(id kube.Resource) []*history.Stream {
	s := p.Store()
	if s == nil || p.record.Withholds(id) {
		return nil
	}
	return s.Streams(id)
}

// Newest returns the newest epoch of a resource, whatever its API version; nil if the resource is
// not recorded.
func (p *Past) Newest(id kube.Resource) *history.Stream {
	if all := p.Streams(id); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// Records reports whether the newest epoch of a resource is of the API version.
func (p *Past) Records(id kube.Resource) bool {
	st := p.Newest(id)
	return st != nil && st.Resource() == id
}

// Recorded reports whether a resource was ever recorded in the API version.
func (p *Past) Recorded(id kube.Resource) bool {
	s := p.Store()
	return s != nil && slices.ContainsFunc(s.Streams(id), func(st *history.Stream) bool { return st.Resource() == id })
}

// Sync waits a few seconds until the events that the gateway has seen of the resource
// are recorded.
func (p *Past) Sync(ctx context.Context, id kube.Resource) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	return p.record.Sync(ctx, id)
}

// continued returns the recorded epoch that an epoch of a timeline continues, nil if
// there is none, or if the resource is withheld.
func (p *Past) continued(id kube.Resource, live *timeline.Timeline, epoch uint64) *history.Stream {
	if p.Store() == nil || p.Withholds(id) {
		return nil
	}
	st := p.record.Continued(id, live, epoch)
	if live.View().Epoch() != epoch {
		return nil
	}
	return st
}

// Holding returns the recorded epoch that a view of a timeline continues, if it has the
// state at an RV. Otherwise it returns nil and the reason; the reason is nil if there
// is no such epoch.
func (p *Past) Holding(ctx context.Context, id kube.Resource, live *timeline.Timeline, v *timeline.View, rv uint64) (*history.Stream, error) {
	st := p.continued(id, live, v.Epoch())
	if st == nil {
		return nil, nil
	}
	err := st.Check(rv)
	if errors.Is(err, history.ErrFuture) && p.Sync(ctx, id) == nil {
		if st = p.continued(id, live, v.Epoch()); st == nil {
			return nil, nil
		}
		err = st.Check(rv)
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// Refusal returns the Status for an error in reading the past. About a moment at which the
// state is not known, it has the causes for programs: see [Details].
func (p *Past) Refusal(err error) *metav1.Status {
	if refused, ok := errors.AsType[*status.Error](err); ok {
		return refused.Status
	}
	s := p.refusal(err)
	if d := causes(err); d != nil {
		s.Details = d
	}
	return s
}

func (p *Past) refusal(err error) *metav1.Status {
	switch {
	case errors.Is(err, ErrUnrecorded):
		return status.Unavailable(err.Error(), false)
	case errors.Is(err, ErrBusy):
		return tooBusy()
	case errors.Is(err, history.ErrBefore), errors.Is(err, history.ErrGap), errors.Is(err, history.ErrClock):
		return status.Expired(err.Error())
	case errors.Is(err, history.ErrFuture):
		return status.BadRequest(err.Error())
	case errors.Is(err, history.ErrClosed), errors.Is(err, upstream.ErrShutdown):
		return status.Unavailable("the history cannot be read now: "+err.Error(), true)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.Timeout("the request ended before its answer: " + err.Error())
	}
	p.log.Error("reading the history", "err", err)
	return status.Internal("the history cannot be read: " + err.Error())
}

// Outside returns why a namespace cannot be read, nil if it can: an empty answer would
// say that there was nothing in it. "" is all namespaces.
func (p *Past) Outside(namespace string) error {
	if p == nil || p.Only == "" || namespace == "" || namespace == p.Only {
		return nil
	}
	return &status.Error{Status: status.NotFound("this recording has only namespace " + p.Only)}
}

// Missing returns why a resource that is selected has no record yet; "" if that is not known.
func (p *Past) Missing(id kube.Resource) string { return p.record.Missing(id) }

var namespaces = kube.Resource{Version: "v1", Name: "namespaces"}

// NotRecorded returns the Status for a resource that is not recorded.
func (p *Past) NotRecorded(id kube.Resource) *metav1.Status {
	switch {
	case p == nil:
		return status.NotFound("nothing is recorded here: give watchkeeper serve a --data-dir")
	case p.Store() == nil:
		return status.Unavailable("the history is not open", true)
	}
	var others []string
	for _, st := range p.Store().Streams(id) {
		others = append(others, st.Resource().APIVersion())
	}
	if len(others) > 0 {
		slices.Sort(others)
		others = slices.Compact(others)
		return status.NotFound(fmt.Sprintf("%s are not recorded as %s, but as %s", id.GroupResource(), id.APIVersion(), strings.Join(others, ", ")))
	}
	missing := p.record.Missing(id)
	switch {
	case p.record.Ended() && p.Only != "" && id == namespaces:
		// With 404, kubectl would say that of each object that it does not find.
		return status.Forbidden(fmt.Sprintf("this recording has what is in namespace %s, and no namespaces", p.Only))
	case p.record.Ended():
		return status.NotFound(fmt.Sprintf("this recording has no %s", id.GroupResource()))
	case p.Lacks != nil && p.Lacks(id):
		text := fmt.Sprintf("the server could not find the requested resource: it has no %s in %s", id.Name, id.APIVersion())
		if missing != "" { // the documents may be from before its definition
			text += "; if they are new: " + missing
		}
		return status.NotFound(text)
	case missing != "":
		return status.NotFound(fmt.Sprintf("%s are not recorded yet: %s", id.GroupResource(), missing))
	}
	how := "add them to --record of watchkeeper serve, as in --record=core," + id.GroupResource()
	if id.Name == "secrets" { // in any group
		how = "add --record-secrets to the flags of watchkeeper serve"
	}
	return status.NotFound(fmt.Sprintf("%s are not recorded: %s, to record them from then on", id.GroupResource(), how))
}
