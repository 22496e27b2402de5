// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/watchkeeper/watchkeeper/internal/kube"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

// proofTimeout bounds a proof of freshness; without one the read is passed
// through.
const proofTimeout = 8 * time.Second

// proofPause is for how long no proof is tried after one that failed.
const proofPause = 5 * time.Second

var errNoProof = errors.New("no proof of freshness from the upstream")

// A proof tells at which RV a timeline has everything that the upstream
// acknowledged before the question was asked. Readers that ask while a proof
// is on its way share the one after it: the one on its way may have begun too
// early for them.
type proof struct {
	check func(context.Context) (uint64, error)
	begin beginFunc

	mu      sync.Mutex // guards what follows
	running *round
	next    *round
	failed  time.Time // when the last one did
}

// A round is one proof.
type round struct {
	done chan struct{}
	rv   uint64
	err  error
}

// get returns an RV at which the timeline is as fresh as the upstream is now.
func (p *proof) get(ctx context.Context) (uint64, error) {
	p.mu.Lock()
	if time.Since(p.failed) < proofPause {
		p.mu.Unlock()
		return 0, errNoProof
	}
	mine := p.next
	if mine == nil {
		mine = &round{done: make(chan struct{})}
		if p.running == nil {
			base, end, ok := p.begin()
			if !ok {
				p.mu.Unlock()
				return 0, errDraining
			}
			p.running = mine
			go func() {
				defer end()
				p.run(base, mine)
			}()
		} else {
			p.next = mine
		}
	}
	p.mu.Unlock()
	select {
	case <-mine.done:
		return mine.rv, mine.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// run does rounds as long as somebody waits for one.
func (p *proof) run(ctx context.Context, r *round) {
	for r != nil {
		ctx, cancel := context.WithTimeout(ctx, proofTimeout)
		r.rv, r.err = p.check(ctx)
		cancel()
		close(r.done)
		p.mu.Lock()
		if r.err != nil {
			p.failed = time.Now()
		}
		r, p.next = p.next, nil
		p.running = r
		p.mu.Unlock()
	}
}

// fresh returns a view that has everything the upstream acknowledged before the
// call.
func (res *resource) fresh(ctx context.Context) (*timeline.View, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*proofTimeout, errNoProof)
	defer cancel()
	rv, err := res.proof.get(ctx)
	if err != nil {
		return nil, err
	}
	return res.timeline.WaitRV(ctx, rv)
}

// freshness is the proof (design, "Reads"; spec §2, "Freshness for a proxy").
// A consistent LIST tells the upstream's RV X and makes its watch cache catch
// up with it. A watch from our own head then replays whatever we do not have
// yet and brings a bookmark ≥ X, in about a second. The last event before it
// is the RV to wait for: between that and X the resource did not change.
func freshness(ctx context.Context, up *Upstream, res *resource) (uint64, error) {
	v := res.timeline.View()
	if v == nil {
		return 0, errNoProof
	}
	known := v.RV
	x, err := upstreamRV(ctx, up, res.id)
	if err != nil {
		return 0, err
	}
	if x < known {
		return 0, fmt.Errorf("%w: it is at %d, %d is known", errNoProof, x, known)
	}
	v = res.timeline.View()
	if v.RV >= x {
		return v.RV, nil
	}
	resp, err := ask(ctx, up, res.id, url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"3"},
		"resourceVersion": {kube.FormatRV(v.RV)},
	})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	last := v.RV
	body := bufio.NewReader(resp.Body)
	for {
		line, err := body.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errNoProof, err)
		}
		f, err := kube.ScanFrame(line)
		if err != nil {
			return 0, err
		}
		if f.Type == kube.Error {
			return 0, fmt.Errorf("%w: %s", errNoProof, f.Status)
		}
		if f.Type != kube.Bookmark && f.Object.RV <= x {
			last = f.Object.RV
		}
		if f.Object.RV >= x {
			return last, nil
		}
	}
}

// upstreamRV returns the RV of a consistent list.
func upstreamRV(ctx context.Context, up *Upstream, id kube.Resource) (uint64, error) {
	resp, err := ask(ctx, up, id, url.Values{"limit": {"1"}})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	list, err := kube.ScanList(string(body), id.Name)
	if err != nil {
		return 0, err
	}
	return list.RV, nil
}

func ask(ctx context.Context, up *Upstream, id kube.Resource, query url.Values) (*http.Response, error) {
	req := up.NewRequest(ctx, http.MethodGet, id.Path(), query.Encode())
	resp, err := up.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%w: %s", errNoProof, resp.Status)
	}
	return resp, nil
}
