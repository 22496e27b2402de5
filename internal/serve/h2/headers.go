// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package h2

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A headerReader decodes header blocks.
type headerReader struct {
	decoder  *hpack.Decoder
	maxBytes int // of a decoded block
	block    headerBlock
}

// A headerBlock is a decoded header. Its size is as in RFC 9113, 6.5.2.
type headerBlock struct {
	method, scheme, path, authority string
	pseudo                          map[string]bool // those that were given; nil for none
	header                          http.Header
	left                            int   // bytes that may follow
	tooLarge                        bool  // the rest is not kept
	invalid                         error // why the request is malformed (RFC 9113, 8.1.1)
}

func (h *headerReader) init(maxBytes int) {
	h.maxBytes = maxBytes
	h.decoder = hpack.NewDecoder(tableSize, h.field)
	h.decoder.SetMaxStringLength(maxBytes)
}

// read decodes a header block, with its CONTINUATION frames. The error ends the
// connection.
func (h *headerReader) read(framer *http2.Framer, first *http2.HeadersFrame) (*headerBlock, error) {
	h.block = headerBlock{left: h.maxBytes, header: http.Header{}}
	raw, frames := 0, 0
	fragment, ended := first.HeaderBlockFragment(), first.HeadersEnded()
	for {
		// The decoded header may be larger than the encoded one, but hardly smaller: what
		// is far above the limit is not worth decoding.
		if raw += len(fragment); raw > 2*h.maxBytes {
			return nil, connectionError{http2.ErrCodeEnhanceYourCalm, "the header is too large"}
		}
		if _, err := h.decoder.Write(fragment); err != nil {
			return nil, connectionError{http2.ErrCodeCompression, err.Error()}
		}
		if ended {
			break
		}
		if frames++; frames > maxContinuations+2*h.maxBytes/maxFrameSize {
			return nil, connectionError{http2.ErrCodeEnhanceYourCalm, "the header has too many CONTINUATION frames"}
		}
		frame, err := framer.ReadFrame()
		if err != nil {
			return nil, err
		}
		next := frame.(*http2.ContinuationFrame) // the framer allows no other here
		fragment, ended = next.HeaderBlockFragment(), next.HeadersEnded()
	}
	if err := h.decoder.Close(); err != nil {
		return nil, connectionError{http2.ErrCodeCompression, err.Error()}
	}
	b := h.block
	h.block = headerBlock{}
	if crumbs := b.header["Cookie"]; len(crumbs) > 1 { // split to compress better (RFC 9113, 8.2.3)
		b.header["Cookie"] = []string{strings.Join(crumbs, "; ")}
	}
	return &b, nil
}

// field takes a decoded field.
func (h *headerReader) field(f hpack.HeaderField) {
	b := &h.block
	if b.left -= int(f.Size()); b.left < 0 {
		b.tooLarge = true
	}
	if b.tooLarge || b.invalid != nil {
		return
	}
	if !httpguts.ValidHeaderFieldValue(f.Value) || strings.Trim(f.Value, " \t") != f.Value {
		b.invalid = fmt.Errorf("the value of %q is not valid", f.Name) // the value may be a secret
		return
	}
	if f.IsPseudo() {
		b.invalid = b.takePseudo(f.Name, f.Value)
		return
	}
	if !validName(f.Name) {
		b.invalid = fmt.Errorf("the name %q is not valid", f.Name)
		return
	}
	switch f.Name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		b.invalid = fmt.Errorf("HTTP/2 has no %q", f.Name)
	case "te":
		if f.Value != "trailers" {
			b.invalid = errors.New(`"te" is not "trailers"`)
		}
	}
	name := http.CanonicalHeaderKey(f.Name)
	b.header[name] = append(b.header[name], f.Value)
}

func (b *headerBlock) takePseudo(name, value string) error {
	var to *string
	switch name {
	case ":method":
		to = &b.method
	case ":scheme":
		to = &b.scheme
	case ":path":
		to = &b.path
	case ":authority":
		to = &b.authority
	}
	switch {
	case to == nil:
		return fmt.Errorf("%q is not known", name)
	case len(b.header) > 0:
		return fmt.Errorf("%q comes after other fields", name)
	case b.pseudo[name]:
		return fmt.Errorf("%q comes twice", name)
	}
	if b.pseudo == nil {
		b.pseudo = map[string]bool{}
	}
	b.pseudo[name] = true
	*to = value
	return nil
}

// validName reports whether a name is a token in lower case.
func validName(name string) bool {
	if !httpguts.ValidHeaderFieldName(name) {
		return false
	}
	for i := range len(name) {
		if 'A' <= name[i] && name[i] <= 'Z' {
			return false
		}
	}
	return true
}

// processHeaders opens a stream, or ends the request of one that is open with trailers.
func (c *conn) processHeaders(f *http2.HeadersFrame) error {
	// The frame is not valid any more after the next one has been read.
	id, ended := f.StreamID, f.StreamEnded()
	dependsOnItself := f.HasPriority() && f.Priority.StreamDep == id
	block, err := c.headers.read(c.framer, f)
	if err != nil {
		return err
	}
	if id%2 == 0 {
		return connectionError{http2.ErrCodeProtocol, "a client's streams have odd numbers"}
	}
	c.mu.Lock()
	st, last := c.streams[id], c.maxID
	ignored := c.drained == finalGoAway && id > last
	how := c.closed.ending(id)
	c.mu.Unlock()
	switch {
	case st != nil:
		return c.processTrailers(st, block, ended)
	case ignored:
		return nil
	case id > last:
		if dependsOnItself {
			return malformed(id, errors.New("the stream depends on itself"))
		}
		return c.open(id, ended, block)
	case how == closedHere:
		return nil // it crossed with our reset
	case how == unknown:
		return connectionError{http2.ErrCodeProtocol, "the stream's number is lower than an earlier one's"}
	}
	return connectionError{http2.ErrCodeStreamClosed, "HEADERS on a closed stream"}
}

// malformed returns the error of a request that breaks the rules of HTTP.
func malformed(id uint32, why error) error {
	return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol, Cause: why}
}

func (c *conn) processTrailers(st *Stream, block *headerBlock, ended bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case st.state == halfClosedRemote:
		return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeStreamClosed, Cause: errors.New("HEADERS after the end")}
	case !ended:
		return malformed(st.id, errors.New("a second header that does not end the request"))
	case block.invalid != nil:
		return malformed(st.id, block.invalid)
	case len(block.pseudo) > 0:
		return malformed(st.id, errors.New("a pseudo-header in trailers"))
	}
	if in := st.in; in != nil {
		if in.declared >= 0 && in.received != in.declared {
			return malformed(st.id, errors.New("the body is shorter than its Content-Length"))
		}
		if !block.tooLarge {
			in.trailer = http.Header{}
			for name, values := range block.header {
				if httpguts.ValidTrailerHeader(name) {
					in.trailer[name] = values
				}
			}
		}
	}
	c.remoteEndLocked(st)
	return nil
}
