// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/watchkeeper/watchkeeper/internal/serve/h2/h2test"
)

// minimal is the block of a valid request without the dynamic table: GET, http, /.
var minimal = []byte{0x82, 0x86, 0x84}

// TestBrokenBlocks sends header blocks that cannot be decoded. After those the tables of
// client and server differ, so each ends the connection (RFC 9113, section 4.3).
func TestBrokenBlocks(t *testing.T) {
	for name, block := range map[string][]byte{
		"index 0":                     {0x80},
		"index beyond the tables":     {0xff, 0x00},
		"huge index":                  {0xff, 0xff, 0xff, 0xff, 0xff, 0x07},
		"integer overflow":            {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"table larger than allowed":   {0x3f, 0xe2, 0x1f}, // 4097
		"table of 4 GB":               {0x3f, 0xe1, 0xff, 0xff, 0xff, 0x0f},
		"size update after a field":   {0x40, 0x01, 'x', 0x01, 'y', 0x20},
		"string cut off":              {0x00, 0x05, 'a', 'b'},
		"string without end":          {0x00, 0x01, 'x', 0x7f, 0xff, 0xff, 0xff, 0xff, 0x07},
		"Huffman: padding of a byte":  {0x00, 0x01, 'x', 0x82, 0x1f, 0xff},
		"Huffman: padding of zeros":   {0x00, 0x01, 'x', 0x81, 0x18},
		"Huffman: end of string":      {0x00, 0x01, 'x', 0x84, 0xff, 0xff, 0xff, 0xff},
		"only the first byte":         {0x40},
		"literal with an index only":  {0x41},
		"name index beyond the table": {0x7f, 0x80, 0x01, 0x01, 'x'},
	} {
		for _, trailers := range []bool{false, true} {
			bubble(t, fmt.Sprint(name, ", in trailers: ", trailers), func(t *testing.T) {
				var handlers gauge
				s := start(t, handlers.count(drain))
				c := h2test.New(t, s.Connect(t))
				id, begin := uint32(1), minimal
				if trailers {
					begin = nil
					var err error
					if id, err = c.Open(false, h2test.Request("POST", "/")...); err != nil {
						t.Fatal(err)
					}
				}
				c.Track(id)
				if strings.HasPrefix(name, "table") { // an update has to come first
					begin = nil
				}
				err := c.Frames(func(f *http2.Framer) {
					_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: true, EndHeaders: true, BlockFragment: append(bytes.Clone(begin), block...)})
				})
				if err != nil {
					t.Fatal(err)
				}
				c.Wait("the end of the connection", func(s *h2test.State) bool { return s.Closed })
				c.Look(func(s *h2test.State) {
					if s.GoAwayCode != http2.ErrCodeCompression {
						t.Errorf("GOAWAY %v, %v", s.GoAway, s.GoAwayCode)
					}
				})
				if seen, _ := handlers.total(); seen != 0 && !trailers {
					t.Error("a handler has seen the request")
				}
			})
		}
	}
}

// TestTablesInStep sends header blocks that are not for a handler. All of them are
// decoded, so that later ones, which refer to the table, have the right fields.
func TestTablesInStep(t *testing.T) {
	for name, lost := range map[string]func(*testing.T, *h2test.Conn){
		"a refused stream": func(t *testing.T, c *h2test.Conn) {
			for i := range maxStreams + 5 {
				if _, err := c.Get("/wait", "x-first", fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
			c.Wait("refusals", func(s *h2test.State) bool { return s.Resets == 5 })
		},
		"a malformed request": func(t *testing.T, c *h2test.Conn) {
			id, err := c.Get("/", "x-first", "1", "Upper", "2", "x-last", "3")
			if err != nil {
				t.Fatal(err)
			}
			c.Answer(id)
		},
		"too large a request": func(t *testing.T, c *h2test.Conn) {
			var many []string
			for i := range 2000 {
				many = append(many, fmt.Sprint("x-", i), "some value")
			}
			id, err := c.Get("/", many...)
			if err != nil {
				t.Fatal(err)
			}
			c.Answer(id)
		},
		"trailers of a stream that was reset": func(t *testing.T, c *h2test.Conn) {
			id, err := c.Open(false, h2test.Request("POST", "/wait", "x-first", "1")...)
			if err == nil {
				err = c.Frames(func(f *http2.Framer) { _ = f.WriteWindowUpdate(id, 0) })
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Answer(id)
			if err := c.HeadersOn(id, true, "x-trailer", "lost", "x-other", "lost as well"); err != nil {
				t.Fatal(err)
			}
		},
		"trailers that are malformed": func(t *testing.T, c *h2test.Conn) {
			id, err := c.Open(false, h2test.Request("POST", "/wait", "x-first", "1")...)
			if err == nil {
				err = c.HeadersOn(id, true, ":path", "/", "x-trailer", "lost")
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Answer(id)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			wait, open := gate(t)
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/wait" {
					wait(w, r)
					return
				}
				_, _ = fmt.Fprint(w, r.Header.Get("X-A"), r.Header.Get("X-B"), r.Header.Get("X-Trailer"))
			}))
			c := h2test.New(t, s.Connect(t))
			if a := c.Exchange("/before", "x-a", "one", "x-b", "two"); string(a.Body) != "onetwo" {
				t.Fatalf("before: %v", a)
			}
			lost(t, c)
			open()
			synctest.Wait() // the handlers have ended: until then they count as streams
			for range 3 {
				if a := c.Exchange("/after", "x-a", "one", "x-b", "two", "x-trailer", "lost"); string(a.Body) != "onetwolost" {
					t.Fatalf("after: %v, body %q", a, a.Body)
				}
			}
		})
	}
}

// TestResponseTable offers the server tables of different sizes for its responses. Its
// memory does not follow a large one, and a small one is kept to: the client's decoder
// fails otherwise.
func TestResponseTable(t *testing.T) {
	for _, size := range []uint32{0, 100, 4096, 1<<32 - 1} {
		bubble(t, fmt.Sprint(size, " bytes"), func(t *testing.T) {
			s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Echo", r.URL.Path+strings.Repeat("x", 4000))
				hello(w, r)
			}))
			c := h2test.New(t, s.Connect(t), h2test.With(http2.Setting{ID: http2.SettingHeaderTableSize, Val: size}))
			c.Exchange("/first")
			before := heap()
			for i := range 300 {
				path := fmt.Sprint("/", i)
				a := c.Exchange(path)
				found := false
				for _, f := range a.Header {
					found = found || f.Name == "x-echo" && strings.HasPrefix(f.Value, path+"x")
				}
				if !found {
					t.Fatalf("%v: %v", a, a.Header)
				}
				c.Forget(a.ID)
			}
			if grown := heap() - before; grown > 1<<19 {
				t.Errorf("the heap has grown by %d bytes", grown)
			}
			// It shrinks while it is in use.
			if err := c.Settings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 64}); err != nil {
				t.Fatal(err)
			}
			if a := c.Exchange("/last"); a.Status != "200" {
				t.Errorf("%v", a)
			}
		})
	}
}
