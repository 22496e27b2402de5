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
	// is begun beside it. API servers send it a second after the beginning.
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
	// last, unless nil, is the timeline's last event: the first one to be sent.
	last *timeline.Event
	head uint64 // up to which there is none but last
}

// replayOf returns the replay of a view's last event, and of what follows the view.
func replayOf(v *timeline.View) replay {
	if last := v.LastEvent(); last != nil && last.RV > 1 {
		return replay{last.RV - 1, last, v.RV}
	}
	return replay{from: v.RV}
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
	resp, err := p.ask(ctx, url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"3"},
		"resourceVersion": {kube.FormatRV(of.from)},
	})
	if err != nil {
		return replayed{}, err
	}
	defer resp.Body.Close()
	last := of.from
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
		case f.Type != kube.Bookmark && of.last != nil && last == of.from:
			if !isEvent(f, of.last) {
				return replayed{}, fmt.Errorf("%w: %s %s at %d instead of %s at %d", errDiverged, f.Type, f.Object.Key, f.Object.RV, of.last.Object.Key, of.last.RV)
			}
			last = of.last.RV
		case f.Type != kube.Bookmark && f.Object.RV <= of.head:
			return replayed{}, fmt.Errorf("%w: %s %s at %d, before the head %d", errDiverged, f.Type, f.Object.Key, f.Object.RV, of.head)
		case f.Type == kube.Bookmark && of.last != nil && last == of.from && f.Object.RV >= of.last.RV:
			return replayed{}, fmt.Errorf("%w: no event at %d", errDiverged, of.last.RV)
		case f.Type == kube.Bookmark && f.Object.RV >= x:
			return replayed{last, f.Object.RV}, nil
		case f.Type == kube.Bookmark:
			return replayed{}, errLags // it is the only one
		case f.Object.RV <= x:
			last = f.Object.RV
		default: // the first event above X
			return replayed{last, x}, nil
		}
	}
}

// isEvent reports whether a frame has an event of a timeline.
func isEvent(f scan.Frame, e *timeline.Event) bool {
	return f.Object.RV == e.RV && f.Object.Key == e.Object.Key && f.Object.UID == e.Object.UID && (f.Type == kube.Deleted) == (e.Type == kube.Deleted)
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
