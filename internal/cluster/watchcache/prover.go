// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/reflector"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/cluster/upstream"
	"github.com/watchkeeper/watchkeeper/internal/protocol/request"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

const (
	// proofTimeout bounds a proof of freshness; without one the read is passed
	// through.
	proofTimeout = 8 * time.Second
	// quickTimeout bounds a quick proof, which a person may be waiting for.
	quickTimeout = time.Second
	// quickWait is how long a proof waits for events to move the head to the
	// upstream's RV, as they do for a busy resource.
	quickWait = 100 * time.Millisecond
	// proofPause is how long no proof is tried after a failed one.
	proofPause = 5 * time.Second
	// smallList is the size of a list, in bytes, up to which asking the upstream
	// costs about as much as a proof.
	smallList = 128 << 10
	// maxAnswer bounds the bytes read of a response, or of a line of a watch;
	// etcd's own limit of a request is 1.5 MiB by default.
	maxAnswer = 64 << 20
)

var (
	errNoProof = errors.New("no proof of freshness from the upstream")
	// errBehind: the head did not reach the upstream's RV in time.
	errBehind = fmt.Errorf("%w: the head is behind", errNoProof)
	// errDiverged: the upstream's history is not the timeline's.
	errDiverged = fmt.Errorf("%w: another history", errNoProof)
)

// A proof says that the view's history has no event up to rv that the timeline
// does not have, and that the upstream was not beyond rv when it was asked.
type proof struct {
	view *timeline.View
	rv   uint64
}

// A prover proves that a timeline has everything the upstream had acknowledged
// when it was asked (docs/kubernetes-watch.md, "Freshness seen from a client").
type prover struct {
	up       *upstream.Server
	id       kube.Resource
	timeline *timeline.Timeline
	status   func() reflector.Status // of the reflector
	// doubt tells the reflector that the upstream has another history than the timeline:
	// its watch only appears to be open.
	doubt func(error)
	// behind is called when the timeline lacks an event that the upstream has sent to the
	// prover.
	behind func()
	// lagged is when a replay last showed that there are several API servers, see
	// prove. Proofs run one at a time.
	lagged time.Time
	// current is when the head was last known to be at the upstream's RV, in Unix
	// nanoseconds.
	current atomic.Int64

	quick upstream.FreshCall[uint64]
	full  upstream.FreshCall[proof]
	same  upstream.FreshCall[proof] // of the state only, see freshState
	// compared limits the calls of same, and maxCompared their size.
	compared    *rate.Limiter
	maxCompared int
}

func newProver(up *upstream.Server, id kube.Resource, t *timeline.Timeline, status func() reflector.Status, doubt func(error), behind func(), compared *rate.Limiter, b *upstream.Background) *prover {
	p := &prover{up: up, id: id, timeline: t, status: status, doubt: doubt, behind: behind, compared: compared, maxCompared: maxCompared}
	p.quick = upstream.FreshCall[uint64]{Ask: p.catchUp, Background: b, Timeout: quickTimeout, Pause: proofPause, ErrPaused: errNoProof}
	p.full = upstream.FreshCall[proof]{Ask: p.prove, Background: b, Timeout: proofTimeout, Pause: proofPause, ErrPaused: errNoProof}
	p.same = upstream.FreshCall[proof]{Ask: p.compare, Background: b, Timeout: quickTimeout, Pause: proofPause, ErrPaused: errNoProof}
	return p
}

// fresh returns a view that has everything the upstream acknowledged before the
// call, normally within about a second. Its RV is at least that of any consistent
// read that was answered before.
func (p *prover) fresh(ctx context.Context) (*timeline.View, error) {
	proven, err := p.full.Do(ctx)
	if err == nil {
		err = p.certain()
	}
	if err != nil {
		return nil, err
	}
	if p.timeline.View().RV < proven.rv {
		// A list in flight may have been taken before the proof; its RV must not be
		// below the head. A list that begins later is consistent, and not older
		// than the proof.
		if p.status().Phase != reflector.Watching {
			return nil, errNoProof
		}
		p.timeline.Advance(proven.view, proven.rv)
	}
	// The view with this RV is published, or about to be.
	return p.waitRV(ctx, proven.rv)
}

// certain fails while the reflector has no watch after a failure: the upstream may have
// been restored from a backup, and then its RVs say nothing about the timeline.
func (p *prover) certain() error {
	if p.status().Phase == reflector.Retrying {
		return errNoProof
	}
	return nil
}

// waitRV waits for the head to reach an RV. The wait is short: the timeline may have
// been reset to an older RV, or the stream that would move the head may be dead.
func (p *prover) waitRV(ctx context.Context, rv uint64) (*timeline.View, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, quickTimeout, errNoProof)
	defer cancel()
	return p.timeline.WaitRV(ctx, rv)
}

// freshSoon is fresh for a reader that cannot wait: it fails soon unless the
// resource is busy.
func (p *prover) freshSoon(ctx context.Context) (*timeline.View, error) {
	rv, err := p.quick.Do(ctx)
	if err == nil {
		err = p.certain()
	}
	if err != nil {
		return nil, err
	}
	return p.waitRV(ctx, rv) // returns at once, unless the timeline has been reset
}

// catchUp is the quick proof. A consistent LIST returns the upstream's RV X, and
// makes the upstream's watch cache reach it. A head at X or above has everything up
// to X. The error is errBehind if the head does not reach X soon: an idle resource
// has no event to move it.
func (p *prover) catchUp(ctx context.Context) (x uint64, err error) {
	v := p.timeline.View()
	if v == nil {
		return 0, errNoProof
	}
	asked := time.Now()
	x, err = p.upstreamRV(ctx)
	if err != nil {
		return 0, err
	}
	if x < v.RV {
		return 0, p.diverged(v, fmt.Errorf("%w: the upstream is at %d, behind the head %d", errDiverged, x, v.RV))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, quickWait, errBehind)
	defer cancel()
	if _, err = p.timeline.WaitRV(ctx, x); err == nil {
		p.current.Store(asked.UnixNano())
	}
	return x, err
}

// prove is the full proof. If the head does not reach X, a watch from the head
// brings the events that the timeline does not have yet and a bookmark ≥ X, in about
// a second. Between the last event before the bookmark and the bookmark the resource
// did not change, so it suffices that the timeline reaches that event.
//
// That the upstream has such a bookmark is the effect of the consistent LIST, which
// makes the watch cache of the API server that answers it reach X. A load balancer may
// send the watch to another one, whose cache is behind and stays there while the
// resource is idle. If no bookmark comes, further LISTs are sent, until they have reached
// all replicas, and further watches.
//
// The upstream may have been restored from a backup while the reflector's watch appears to
// be open. So the watch of the proof begins before the last event of the timeline and has
// to send it. If the upstream does not have it any more, this is not checked.
func (p *prover) prove(ctx context.Context) (proof, error) {
	x, err := p.catchUp(ctx)
	v := p.timeline.View()
	if err == nil || errors.Is(err, errBehind) && v.RV >= x {
		return proof{v, x}, nil
	}
	if !errors.Is(err, errBehind) {
		return proof{}, err
	}
	got, err := p.replays(ctx, replayOf(v), x)
	if errors.Is(err, errCompacted) {
		got, err = p.replays(ctx, replay{from: v.RV}, x)
	}
	if err != nil {
		return proof{}, p.diverged(v, err)
	}
	if _, err = p.waitRV(ctx, got.last); err != nil {
		p.behind()
	}
	return proof{v, got.rv}, err
}

// diverged reports an error to the reflector if it shows that the upstream's history is not
// that of the view, and the timeline has not begun again since.
func (p *prover) diverged(v *timeline.View, err error) error {
	if errors.Is(err, errDiverged) && p.timeline.View().Epoch() == v.Epoch() {
		p.doubt(err)
	}
	return err
}

// askBookmark sends a consistent LIST in the background. If it does not show that the head
// is the upstream's RV, it makes the upstream send a bookmark on the watch of an idle
// resource.
func (p *prover) askBookmark() {
	ctx, end, ok := p.quick.Background.Begin()
	if !ok {
		return
	}
	go func() {
		defer end()
		ctx, cancel := context.WithTimeout(ctx, proofTimeout)
		defer cancel()
		_, _ = p.catchUp(ctx)
	}()
}

// upstreamRV returns the RV of a consistent list.
func (p *prover) upstreamRV(ctx context.Context) (uint64, error) {
	body, err := p.read(ctx, p.id.Path(), "application/json", url.Values{"limit": {"1"}})
	if err != nil {
		return 0, err
	}
	list, err := scan.ParseList(string(body), p.id.Name)
	if err != nil {
		return 0, err // the body may have been cut off
	}
	return list.RV, nil
}

// read returns the body of an answer, as far as it is not too long.
func (p *prover) read(ctx context.Context, path, accept string, query url.Values) ([]byte, error) {
	resp, err := p.ask(ctx, path, accept, query)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
}

func (p *prover) ask(ctx context.Context, path, accept string, query url.Values) (*http.Response, error) {
	req := p.up.NewRequest(ctx, http.MethodGet, path, query.Encode())
	req.Header.Set("Accept", accept)
	resp, err := p.up.Transport.RoundTrip(req)
	if err != nil {
		return nil, upstream.Redacted(err)
	}
	if resp.StatusCode == http.StatusGatewayTimeout {
		resp.Body.Close()
		return nil, errLags
	}
	if resp.StatusCode == http.StatusGone {
		resp.Body.Close()
		return nil, errCompacted
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%w: %s", errNoProof, resp.Status)
	}
	return resp, nil
}

// paysSample is how many objects are read to estimate the size of a list.
const paysSample = 2000

// pays reports whether to try a proof for a consistent list: not if the list, estimated from
// the snapshot, is so small that asking the upstream costs no more.
func (p *prover) pays(s *timeline.Snapshot, sel request.Selection, limit int64) bool {
	// Deletions of Events may share an RV (etcd's leases): a list between two
	// of them would not be exact.
	if p.id.Uncached() || sel.Key != "" {
		return false
	}
	size, n, looked := 0, int64(0), 0
	for o := range s.All(sel.Namespace, "") {
		if looked++; looked > paysSample {
			return size*s.Len()/paysSample > smallList
		}
		if !sel.Match.Matches(o) {
			continue
		}
		if size += len(o.JSON); size > smallList {
			return true
		}
		if n++; n == limit {
			return false
		}
	}
	return false
}
