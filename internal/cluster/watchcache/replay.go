// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchkeeper/watchkeeper/informer/kube"
	"github.com/watchkeeper/watchkeeper/informer/scan"
	"github.com/watchkeeper/watchkeeper/internal/timeline"
)

const (
	// replayTimeout is how long the bookmark of a replay may take before another replay
	// is begun next to it. API servers send it a second after the beginning.
	replayTimeout = 1500 * time.Millisecond
	// nudgeInterval is how often replicas are made to catch up.
	nudgeInterval = 150 * time.Millisecond
	// assumeReplicas is how long after a late bookmark replicas are made to catch up
	// from the beginning.
	assumeReplicas = 10 * time.Minute
)

// A replayed is the result of a replay: the RV of the last event ≤ X, and the RV up to
// which there was no later event.
type replayed struct{ last, rv uint64 }

// A replay asks for the events after an RV.
type replay struct {
	from uint64
	// view, unless nil, is what the upstream has to continue: the first event to be sent is
	// the last one that the view knows.
	view *timeline.View
	last timeline.LastKnown
}

// replayOf returns the replay of a view's last event, and of what follows the view.
func replayOf(v *timeline.View) replay {
	if last := v.LastKnown(); last.Object != nil && last.Object.RV > 1 {
		return replay{last.Object.RV - 1, v, last}
	}
	return replay{from: v.RV}
}

// A replayCheck compares the events of a replay with its view.
type replayCheck struct {
	replay
	begun bool
	// passing are objects that are not in the view's list: they have to be deleted before
	// it. See the continuity check of package informer, which has the same rules.
	passing map[kube.Key]bool
}

// event takes the next event. It fails if the view's history does not have it.
func (c *replayCheck) event(f scan.Frame) error {
	o, deleted := f.Object, f.Type == kube.Deleted
	switch last := c.last.Object; {
	case c.view == nil || o.RV > c.view.RV && c.begun:
		return nil
	case !c.begun && (o.RV != last.RV || o.Key != last.Key || o.UID != last.UID || deleted != c.last.Deleted):
		return fmt.Errorf("%w: %s %s at %d instead of %s at %d", errDiverged, f.Type, o.Key, o.RV, last.Key, last.RV)
	case !c.begun && o.JSON != last.JSON:
		return fmt.Errorf("%w: %s has another content at %d", errNoProof, o.Key, o.RV)
	case !c.begun:
		c.begun = true
		return nil
	case o.RV > c.last.Listed || c.view.Get(o.Key) != nil:
		return fmt.Errorf("%w: %s %s at %d, before the head %d", errDiverged, f.Type, o.Key, o.RV, c.view.RV)
	}
	if delete(c.passing, o.Key); !deleted {
		c.passing[o.Key] = true
	}
	return nil
}

// end is called when no event up to the head can follow. It fails if the view's history
// has one that has not come, or an object that it does not have is left.
func (c *replayCheck) end() error {
	switch {
	case c.view == nil:
		return nil
	case !c.begun:
		return fmt.Errorf("%w: no event at %d", errDiverged, c.last.Object.RV)
	case len(c.passing) > 0:
		return fmt.Errorf("%w: %d objects below %d were not in the list", errDiverged, len(c.passing), c.last.Listed)
	}
	return nil
}

// replays runs a replay until it has received everything up to x. It begins another one
// when the last one failed or is late.
func (p *prover) replays(ctx context.Context, of replay, x uint64) (replayed, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		replayed
		err error
	}
	results := make(chan result)
	run := func() {
		got, err := p.replay(ctx, of, x)
		select {
		case results <- result{got, err}:
		case <-ctx.Done():
		}
	}
	nudge := sync.OnceFunc(func() { go p.nudge(ctx) })
	if time.Since(p.lagged) < assumeReplicas {
		nudge()
	}
	late := time.NewTimer(replayTimeout)
	defer late.Stop()
	go run()
	for running := 1; ; {
		select {
		case got := <-results:
			if !errors.Is(got.err, errLags) {
				return got.replayed, got.err
			}
			if running--; running == 0 {
				late.Reset(nudgeInterval)
			}
		case <-late.C:
			late.Reset(replayTimeout)
			running++
			go run()
		case <-ctx.Done():
			return replayed{}, context.Cause(ctx)
		}
		p.lagged = time.Now()
		nudge()
	}
}

// nudge sends consistent LISTs until ctx ends.
func (p *prover) nudge(ctx context.Context) {
	for ctx.Err() == nil {
		_, _ = p.upstreamRV(ctx)
		_ = await(ctx, nil, time.After(nudgeInterval))
	}
}

// errLags: the API server that answered a replay has not reached the RV to be proven.
var errLags = fmt.Errorf("%w: the API server's watch cache is behind", errNoProof)

// errCompacted: the upstream does not have the events any more.
var errCompacted = fmt.Errorf("%w: the events are compacted", errNoProof)

// replay watches until it has received everything up to x. It fails with errLags if that
// does not happen, but may with another API server.
func (p *prover) replay(ctx context.Context, of replay, x uint64) (replayed, error) {
	resp, err := p.ask(ctx, p.id.Path(), "application/json", url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"3"},
		"resourceVersion": {kube.FormatRV(of.from)},
	})
	if err != nil {
		return replayed{}, err
	}
	defer resp.Body.Close()
	last, check := of.from, &replayCheck{replay: of, passing: map[kube.Key]bool{}}
	body := bufio.NewReader(resp.Body)
	for {
		line, err := readLine(body, maxAnswer)
		if errors.Is(err, io.EOF) {
			return replayed{}, errLags
		}
		if err != nil {
			return replayed{}, fmt.Errorf("%w: %w", errNoProof, err)
		}
		f, err := scan.ParseFrame(line)
		if err != nil {
			return replayed{}, err
		}
		switch {
		case f.Type == kube.Error && isTooLarge(f.Status):
			return replayed{}, errLags
		case f.Type == kube.Error && isCompacted(f.Status):
			return replayed{}, errCompacted
		case f.Type == kube.Error:
			return replayed{}, fmt.Errorf("%w: %s", errNoProof, f.Status)
		case f.Type == kube.Bookmark && f.Object.RV < x:
			return replayed{}, errLags // it is the only one
		case f.Type == kube.Bookmark:
			return replayed{last, f.Object.RV}, check.end()
		}
		if err := check.event(f); err != nil {
			return replayed{}, err
		}
		if f.Object.RV > x { // the first event above X
			return replayed{last, x}, check.end()
		}
		last = f.Object.RV
	}
}

// isCompacted reports whether a Status says that the events are compacted.
func isCompacted(text string) bool { return codeOf(text) == http.StatusGone }

// isTooLarge reports whether a Status says that the RV is above that of the API
// server's watch cache.
func isTooLarge(text string) bool { return codeOf(text) == http.StatusGatewayTimeout }

// codeOf returns the code of a Status, 0 if the text is none.
func codeOf(text string) int32 {
	var s metav1.Status
	_ = json.Unmarshal([]byte(text), &s)
	return s.Code
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
