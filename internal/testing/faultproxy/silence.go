// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Silence makes the open watches send nothing more and stay open, as if a load
// balancer had lost their state, and returns how many. Later requests are served.
func (p *Proxy) Silence() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for x := range p.open {
		if x.kind == Watch || x.kind == WatchList || x.kind == ClientWatch {
			x.silent.Store(true)
			n++
		}
	}
	return n
}

// Mute makes the watches of a resource send nothing and stay open: those that are open, and
// until unmute is called those that are opened later. They are answered.
func (p *Proxy) Mute(resource string) (unmute func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted = resource
	for x := range p.open {
		if x.resource == resource && x.watches() {
			x.silent.Store(true)
		}
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.muted = ""
	}
}

// watches reports whether the request is a watch.
func (x *exchange) watches() bool {
	return x.kind == Watch || x.kind == WatchList || x.kind == ProofWatch || x.kind == ClientWatch
}

// Bookmarked returns how many bookmarks Options.Bookmarks has added.
func (p *Proxy) Bookmarked() int { return int(p.bookmarked.Load()) }

// marked returns the body of a watch with additional bookmarks. It has to be read
// until the exchange ends.
func (x *exchange) marked(body io.Reader) io.Reader {
	ctx, every := x.r.Context(), x.p.opts.Bookmarks
	if every == 0 {
		return body
	}
	out, in := io.Pipe()
	var mu sync.Mutex // guards bookmark, and the order of writes
	var bookmark []byte
	go func() {
		initial := x.r.URL.Query().Get("sendInitialEvents") == "true"
		for lines := bufio.NewReader(body); ; {
			line, err := lines.ReadBytes('\n')
			mu.Lock()
			if initial = initial && !isEnd(line); !initial {
				bookmark = bookmarkAfter(line)
			}
			_, _ = in.Write(line) // fails only if the reader is gone
			mu.Unlock()
			if err != nil {
				in.CloseWithError(err)
				return
			}
		}
	}()
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				out.Close()
				return
			case <-tick.C:
			}
			mu.Lock()
			if bookmark != nil {
				x.p.bookmarked.Add(1)
				_, _ = in.Write(bookmark)
			}
			mu.Unlock()
		}
	}()
	return out
}

// bookmarkAfter returns a bookmark at the RV of the line; nil if the line is not a
// frame of an object.
func bookmarkAfter(line []byte) []byte {
	var f struct {
		Object struct {
			Kind, APIVersion string
			Metadata         struct{ ResourceVersion string }
		}
	}
	if json.Unmarshal(line, &f) != nil || f.Object.Metadata.ResourceVersion == "" {
		return nil
	}
	return fmt.Appendf(nil, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q}}}`+"\n",
		f.Object.Kind, f.Object.APIVersion, f.Object.Metadata.ResourceVersion)
}
