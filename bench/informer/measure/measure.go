// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package measure is what the clients of the informer benchmark are built on:
// it has a client sync, follow changes and list again, and measures what that
// costs this process. A program hands its modes to Main, which does what
// bench/informer, that starts it, asks for. It needs the standard library
// only, so that a process has the size of the client in it.
package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// A Client is what is measured: it keeps all Pods of an API server and has a
// handler for what is added, updated and deleted, that only counts.
type Client interface {
	// Start begins to sync and returns. What it starts ends with the context.
	Start(context.Context, Target) error
	// Synced says whether the handler has been given everything listed.
	Synced() bool
	// Handled returns how often the handler was called.
	Handled() int64
	// Len returns how many Pods are kept.
	Len() int
	// ResourceVersion returns that of a Pod as it is kept, or "".
	ResourceVersion(namespace, name string) string
}

// A Decoder is a Client whose handler is given something that is not decoded
// yet. The changes are measured twice, the second time with a handler that
// decodes each object once.
type Decoder interface {
	Decode(bool)
}

// A Target is the API server: its URL, and the CA's certificate in PEM if it
// is https.
type Target struct {
	URL string
	CA  []byte
}

// A Mode is a way to use a library.
type Mode struct {
	Name     string        // as in "typed-json-list"
	Library  string        // as in "client-go"
	Encoding string        // what is on the wire: modes of the same are compared
	Default  bool          // what one gets of client-go by asking for nothing
	Partial  bool          // keeps less than the whole object: not compared with
	Env      []string      // variables the process needs, as "NAME=value"
	New      func() Client `json:"-"`
}

// An Order is what a process is to do. It comes to its standard input, as
// JSON, and the Result goes to its standard output.
type Order struct {
	Mode   string
	Target Target
	Pods   int // as many as the server has
	Events int // changes to follow
	// Profile is where CPU profiles go, one of each phase, whose name is
	// appended; "" for none.
	Profile string
}

// A Result is what was measured. Times are in seconds of wall time or CPU time
// of the process, sizes in bytes.
type Result struct {
	Sync          Phase
	HeapPerObject float64 // live, after sync
	Events        Phase
	Decoded       *Phase // the same with a handler that decodes
	Relist        Phase  // after a 410, with nothing changed
}

// A Phase is one part of a run.
type Phase struct {
	Wall, CPU          float64
	RSSBefore, RSSPeak float64
	Handled            int64 // calls of the handler
}

// Main is the main function of a program that has these modes. Called with
// the argument "modes" it lists them.
func Main(modes ...Mode) {
	if err := run(os.Args[1:], modes, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
}

func run(args []string, modes []Mode, in io.Reader, out io.Writer) error {
	if len(args) == 1 && args[0] == "modes" {
		return json.NewEncoder(out).Encode(modes)
	}
	orders := json.NewDecoder(in)
	var order Order
	if err := orders.Decode(&order); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	// Whoever gave the order keeps the input open for as long as it lives.
	go func() {
		if err := orders.Decode(new(Order)); errors.Is(err, io.EOF) {
			os.Exit(1)
		}
	}()
	for _, m := range modes {
		if m.Name == order.Mode {
			result, err := Run(order, m.New())
			if err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			return json.NewEncoder(out).Encode(result)
		}
	}
	return fmt.Errorf("no mode %q", order.Mode)
}
