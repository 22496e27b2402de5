// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/watchkeeper/watchkeeper/informer"
	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/request"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
	"github.com/watchkeeper/watchkeeper/internal/upstream"
)

const (
	// proofTimeout bounds a proof of freshness; without one the read is passed
	// through.
	proofTimeout = 8 * time.Second
	// quickTimeout bounds a quick one, which a person may be waiting for.
	quickTimeout = time.Second
	// quickWait is how long the head is waited for to come to the upstream's
	// RV by events of its own: that of a busy resource does.
	quickWait = 100 * time.Millisecond
	// proofPause is for how long no proof is tried after one that failed.
	proofPause = 5 * time.Second
	// smallList is the size of a list, in bytes, up to which the upstream's
	// answer costs about as much as a proof.
	smallList = 128 << 10
	// maxAnswer is how many bytes of an answer, or of a line of a watch, are
	// read at the most; etcd's own limit of a request is 1.5 MiB by default.
	maxAnswer = 64 << 20
)

var (
	errNoProof = errors.New("no proof of freshness from the upstream")
	// errBehind: the head did not come to the upstream's RV in time.
	errBehind = fmt.Errorf("%w: the head is behind", errNoProof)
)

// A proof says that nothing of the resource happened in the view's history above
// what the timeline has, up to rv; and that the upstream was not beyond rv when
// it was asked.
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
	status   func() informer.Status // of the reflector

	quick upstream.FreshCall[uint64]
	full  upstream.FreshCall[proof]
}

func newProver(up *upstream.Server, id kube.Resource, t *timeline.Timeline, status func() informer.Status, b *upstream.Background) *prover {
	p := &prover{up: up, id: id, timeline: t, status: status}
	p.quick = upstream.FreshCall[uint64]{Ask: p.catchUp, Background: b, Timeout: quickTimeout, Pause: proofPause, ErrPaused: errNoProof}
	p.full = upstream.FreshCall[proof]{Ask: p.prove, Background: b, Timeout: proofTimeout, Pause: proofPause, ErrPaused: errNoProof}
	return p
}

// fresh returns a view that has everything the upstream acknowledged before the
// call, in about a second at the most where all is well. Its RV is at least
// that of any consistent read that was answered before.
func (p *prover) fresh(ctx context.Context) (*timeline.View, error) {
	proven, err := p.full.Do(ctx)
	if err != nil {
		return nil, err
	}
	if p.timeline.View().RV < proven.rv {
		// A list that is on its way may have been taken before the proof; its
		// RV is not to be below the head. One that begins from here on is a
		// consistent one, and not older than the proof.
		if p.status().Phase != informer.Watching {
			return nil, errNoProof
		}
		p.timeline.Advance(proven.view, proven.rv)
	}
	// It is there already, or about to be published.
	return p.waitRV(ctx, proven.rv)
}

// waitRV waits for the head to come to an RV; not for long, since it may have
// been taken back, or the stream that would bring it there may be dead.
func (p *prover) waitRV(ctx context.Context, rv uint64) (*timeline.View, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, quickTimeout, errNoProof)
	defer cancel()
	return p.timeline.WaitRV(ctx, rv)
}

// freshSoon is fresh for a reader who cannot wait: it fails soon unless the
// resource is a busy one.
func (p *prover) freshSoon(ctx context.Context) (*timeline.View, error) {
	rv, err := p.quick.Do(ctx)
	if err != nil {
		return nil, err
	}
	return p.waitRV(ctx, rv) // it is there, unless the timeline has been reset
}

// catchUp is the quick proof. A consistent LIST tells the upstream's RV X, and
// makes its watch cache come to it. A head at X or above has everything up to
// X. The error is errBehind when the head does not come there soon: of an idle
// resource there is no event to bring it.
func (p *prover) catchUp(ctx context.Context) (x uint64, err error) {
	v := p.timeline.View()
	if v == nil {
		return 0, errNoProof
	}
	x, err = p.upstreamRV(ctx)
	if err != nil {
		return 0, err
	}
	if x < v.RV {
		return 0, fmt.Errorf("%w: it is at %d, %d is known", errNoProof, x, v.RV)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, quickWait, errBehind)
	defer cancel()
	_, err = p.timeline.WaitRV(ctx, x)
	return x, err
}

// prove is the full proof: where the head does not come to X, a watch from it
// replays whatever it does not have yet and brings a bookmark ≥ X, in about a
// second. Between the last event before it and the bookmark the resource did
// not change: the timeline has to come to that event.
func (p *prover) prove(ctx context.Context) (proof, error) {
	x, err := p.catchUp(ctx)
	v := p.timeline.View()
	if err == nil || errors.Is(err, errBehind) && v.RV >= x {
		return proof{v, x}, nil
	}
	if !errors.Is(err, errBehind) {
		return proof{}, err
	}
	last, rv, err := p.replay(ctx, v.RV, x)
	if err != nil {
		return proof{}, err
	}
	_, err = p.waitRV(ctx, last)
	return proof{v, rv}, err
}

// replay watches from an RV until everything up to x has been brought. It
// returns the RV of the last event ≤ x, and up to which RV there was none after
// that.
func (p *prover) replay(ctx context.Context, from, x uint64) (last, rv uint64, err error) {
	resp, err := p.ask(ctx, url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"3"},
		"resourceVersion": {kube.FormatRV(from)},
	})
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	last = from
	body := bufio.NewReader(resp.Body)
	for {
		line, err := readLine(body, maxAnswer)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: %w", errNoProof, err)
		}
		f, err := scan.ParseFrame(line)
		if err != nil {
			return 0, 0, err
		}
		switch {
		case f.Type == kube.Error:
			return 0, 0, fmt.Errorf("%w: %s", errNoProof, f.Status)
		case f.Type == kube.Bookmark && f.Object.RV >= x:
			return last, f.Object.RV, nil
		case f.Type == kube.Bookmark:
		case f.Object.RV <= x:
			last = f.Object.RV
		default: // the first event above X
			return last, x, nil
		}
	}
}

// upstreamRV returns the RV of a consistent list.
func (p *prover) upstreamRV(ctx context.Context) (uint64, error) {
	resp, err := p.ask(ctx, url.Values{"limit": {"1"}})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, err
	}
	list, err := scan.ParseList(string(body), p.id.Name)
	if err != nil {
		return 0, err // it may have been cut
	}
	return list.RV, nil
}

func (p *prover) ask(ctx context.Context, query url.Values) (*http.Response, error) {
	req := p.up.NewRequest(ctx, http.MethodGet, p.id.Path(), query.Encode())
	resp, err := p.up.Transport.RoundTrip(req)
	if err != nil {
		return nil, upstream.Redacted(err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%w: %s", errNoProof, resp.Status)
	}
	return resp, nil
}

// readLine returns the next line, of at most most bytes, without its newline.
func readLine(r *bufio.Reader, most int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return string(line[:len(line)-1]), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		case len(line) > most:
			return "", fmt.Errorf("a line of more than %d bytes", most)
		}
	}
}

// paysSample is how many objects are looked at to estimate how long a list is.
const paysSample = 2000

// pays reports whether to try a quick proof for a consistent list: not just
// after one that failed, and not when the list, which is about what the
// snapshot has, is so small that the upstream may as well be asked for it.
func (p *prover) pays(s *timeline.Snapshot, sel request.Selection, limit int64) bool {
	// Deletions of Events may share an RV (etcd's leases): a list between two
	// of them would not be exact.
	if p.id.Uncached() || sel.Key != "" || p.quick.Paused() {
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
