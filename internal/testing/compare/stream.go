// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/watchkeeper/watchkeeper/internal/testing/watchread"
)

// A Stream is an open watch.
type Stream struct {
	Answer *Answer // status and headers
	// Skip reports whether to omit a frame; nil omits none.
	Skip    func(*Frame) bool
	request string
	frames  chan Frame
	err     error // why the stream ended; set before frames is closed
	cancel  context.CancelFunc
}

// Watch opens a watch; the caller closes it. An answer that is not 200 is an
// error.
func (e *Endpoint) Watch(ctx context.Context, r Request) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := e.Send(ctx, r)
	if err != nil {
		cancel()
		return nil, err
	}
	a := head(resp)
	if a.Code != 200 {
		defer cancel()
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %d %s", r, a.Code, body)
	}
	s := &Stream{Answer: a, request: r.String(), frames: make(chan Frame, 1), cancel: cancel}
	go func() {
		defer close(s.frames)
		defer resp.Body.Close()
		frames, err := watchread.New(a.Header.Get("Content-Type"), resp.Body)
		if err != nil {
			s.err = err
			return
		}
		for {
			f, err := readFrame(frames)
			if err != nil {
				s.err = err
				return
			}
			select {
			case s.frames <- f:
			case <-ctx.Done():
				s.err = ctx.Err()
				return
			}
		}
	}()
	return s, nil
}

// Close ends the watch.
func (s *Stream) Close() {
	s.cancel()
	for range s.frames {
	}
}

// Next waits for the next frame that is not skipped. io.EOF means a clean end.
func (s *Stream) Next(ctx context.Context) (Frame, error) {
	for {
		f, err := s.next(ctx)
		if err != nil || s.Skip == nil || !s.Skip(&f) {
			return f, err
		}
	}
}

func (s *Stream) next(ctx context.Context) (Frame, error) {
	select {
	case f, ok := <-s.frames:
		if !ok {
			return Frame{}, s.err
		}
		return f, nil
	case <-ctx.Done():
		return Frame{}, fmt.Errorf("%s: no frame: %w", s.request, context.Cause(ctx))
	}
}

// Until reads frames until enough returns true for all frames read. If enough is nil,
// it reads to the stream's clean end.
func (s *Stream) Until(ctx context.Context, enough func([]Frame) bool) ([]Frame, error) {
	var out []Frame
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, io.EOF) && enough == nil {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("%s: after %d frames: %w", s.request, len(out), err)
		}
		out = append(out, f)
		if enough != nil && enough(out) {
			return out, nil
		}
	}
}

// A Pair is the same watch at both endpoints.
type Pair struct {
	Want, Got *Stream
	// Mask blanks the parts of a frame that may differ; nil blanks none.
	Mask    Mask
	request string
}

// Watch opens a watch at both endpoints, and compares the headers.
func Watch(ctx context.Context, want, got *Endpoint, r Request) (*Pair, error) {
	w, err := want.Watch(ctx, r)
	if err != nil {
		return nil, err
	}
	g, err := got.Watch(ctx, r)
	if err != nil {
		w.Close()
		return nil, &Difference{r.String(), "start of the watch", "200", err.Error()}
	}
	p := &Pair{Want: w, Got: g, request: r.String()}
	if err := diffHeaders(p.request, w.Answer.Header, g.Answer.Header); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close ends both watches.
func (p *Pair) Close() {
	p.Want.Close()
	p.Got.Close()
}

// Until reads both streams as [Stream.Until] does, compares them frame by
// frame, and returns the frames of want. The RVs of bookmarks are not compared.
func (p *Pair) Until(ctx context.Context, enough func([]Frame) bool) ([]Frame, error) {
	want, err := p.Want.Until(ctx, enough)
	if err != nil {
		return want, fmt.Errorf("want: %w", err)
	}
	got, err := p.Got.Until(ctx, enough)
	if err != nil {
		return want, &Difference{p.request, "stream", fmt.Sprintf("%d frames", len(want)), fmt.Sprintf("%v: %v", got, err)}
	}
	return want, DiffFrames(p.request, p.masked(want), p.masked(got))
}

func (p *Pair) masked(frames []Frame) []Frame {
	if p.Mask == nil {
		return frames
	}
	out := slices.Clone(frames)
	for i := range out {
		out[i].Raw = p.Mask(out[i].Raw)
	}
	return out
}

// DiffFrames compares frames, except for the RVs of bookmarks.
func DiffFrames(request string, want, got []Frame) error {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) {
			return &Difference{request, fmt.Sprintf("frame %d", i), fmt.Sprint(Strings(want)), fmt.Sprint(Strings(got))}
		}
		if w, g := want[i].masked(), got[i].masked(); string(w) != string(g) {
			return bodyDifference(fmt.Sprintf("%s: frame %d", request, i), w, g)
		}
	}
	return nil
}

// Strings returns the frames in words, with namespaces and RVs.
func Strings(frames []Frame) []string {
	var out []string
	for _, f := range frames {
		out = append(out, f.String())
	}
	return out
}
