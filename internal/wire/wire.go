// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire writes what the timeline holds in the forms of the Kubernetes
// API: watch frames and lists in JSON, so far, and the choice of a form from an
// Accept header.
//
// Nothing is encoded again: frames and lists are stored texts with little
// around them. All functions are pure and may be called concurrently.
package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/watchkeeper/watchkeeper/internal/kube"
)

// AcceptsJSON reports whether the first choice of an Accept header is plain
// JSON. Any other choice, a view such as as=Table, and whatever is unclear
// (weights, unknown parameters) is not for this package to answer yet.
func AcceptsJSON(accept string) bool {
	if strings.Contains(accept, "q=") {
		return false
	}
	first, _, _ := strings.Cut(accept, ",")
	switch strings.TrimSpace(first) {
	case "application/json", "*/*":
		return true
	}
	return accept == ""
}

// WriteFrame writes a watch event as one line.
func WriteFrame(w io.StringWriter, typ kube.EventType, object string) error {
	for _, s := range [...]string{`{"type":"`, string(typ), `","object":`, object, "}\n"} {
		if _, err := w.WriteString(s); err != nil {
			return err
		}
	}
	return nil
}

// A ListHead is what a list says besides its items.
type ListHead struct {
	// Kind is the list's own kind, such as PodList.
	Kind, APIVersion string
	// Typed selects the form of the API server's own types; the other one,
	// with all keys in alphabetical order, is that of custom resources.
	Typed bool
	RV    uint64
	// Continue is the token of the next page, "" on the last one.
	Continue string
	// Remaining is the number of items behind this page; 0 is left out.
	Remaining int64
}

// WriteList writes a list with the newline behind it, header, stored
// fragments and trailer.
func WriteList(w io.Writer, h ListHead, items []*kube.Object) error {
	b := bufio.NewWriterSize(w, 64<<10)
	var meta, trailer string
	version := `"resourceVersion":"` + kube.FormatRV(h.RV) + `"`
	more := `"continue":` + quote(h.Continue)
	remaining := ""
	if h.Remaining > 0 {
		remaining = `,"remainingItemCount":` + strconv.FormatInt(h.Remaining, 10)
	}
	if h.Typed {
		if h.Continue == "" {
			more = ""
		} else {
			more = "," + more
		}
		meta = `"metadata":{` + version + more + remaining + `}`
		b.WriteString(`{"kind":` + quote(h.Kind) + `,"apiVersion":` + quote(h.APIVersion) + `,` + meta + `,"items":[`)
		trailer = "]}\n"
	} else {
		meta = `"metadata":{` + more + remaining + `,` + version + `}`
		b.WriteString(`{"apiVersion":` + quote(h.APIVersion) + `,"items":[`)
		trailer = `],"kind":` + quote(h.Kind) + `,` + meta + "}\n"
	}
	var scratch []byte
	first := true
	for _, o := range items {
		if !first {
			b.WriteByte(',')
		}
		first = false
		scratch = o.AppendListItem(scratch[:0])
		if _, err := b.Write(scratch); err != nil {
			return err
		}
	}
	b.WriteString(trailer) // a bufio.Writer keeps its first error
	return b.Flush()
}

func quote(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}

// Indent returns JSON as the API server prints it for people: indented by two
// spaces, without a newline behind it.
func Indent(text []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimRight(text, "\n"), "", "  ") != nil {
		return text // it was scanned before; this does not happen
	}
	return b.Bytes()
}
