// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2test

import "golang.org/x/net/http2"

// Upload sends a body within the server's windows, and END_STREAM. It waits for the windows
// to open, and stops without an error when the server resets the stream or has answered.
func (c *Conn) Upload(id uint32, body []byte) error {
	for {
		n, done := 0, false
		if err := c.Await(func(s *State) bool {
			n = min(len(body), int(c.MayUpload(id, 16384)))
			done = s.Streams[id].Done()
			return n > 0 || done || len(body) == 0
		}); err != nil {
			return err
		}
		if done {
			return nil
		}
		c.mu.Lock()
		c.Uploaded(id, n)
		c.mu.Unlock()
		part := body[:n]
		body = body[n:]
		if err := c.Data(id, len(body) == 0, part); err != nil || len(body) == 0 {
			return err
		}
	}
}

// MayUpload returns how much DATA the client may send, at most a number of bytes. It is to
// be called in a function that has the state.
func (c *Conn) MayUpload(id uint32, most int64) int64 {
	window := int64(defaultWindow)
	if n, ok := c.state.Settings[http2.SettingInitialWindowSize]; ok {
		window = int64(n)
	}
	return max(0, min(most, c.state.Window, window+c.state.Streams[id].Window))
}

// Uploaded counts DATA that the client sends. It is to be called as MayUpload is.
func (c *Conn) Uploaded(id uint32, n int) {
	c.state.Window -= int64(n)
	c.state.Streams[id].Window -= int64(n)
}
