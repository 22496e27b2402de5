// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

// Package measure runs and measures a client of the informer benchmark: it lets the
// client sync, follow changes and relist, and measures CPU and memory of the process.
// A program passes its modes to Main; bench/informer starts the program and sends it an
// Order. The package requires the standard library only, so that the size of the
// process is that of the client.
package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// A Client is an informer of all Pods of an API server. Its handler of added, updated
// and deleted Pods only counts.
type Client interface {
	// Start begins to sync and returns. The client runs until the context ends.
	Start(context.Context, Target) error
	// Synced reports whether the handler has received every listed Pod.
	Synced() bool
	// Handled returns the number of calls of the handler.
	Handled() int64
	// Len returns the number of Pods in the client's store.
	Len() int
	// ResourceVersion returns the resourceVersion of a Pod in the store, "" if it is
	// not there.
	ResourceVersion(namespace, name string) string
}

// A Decoder is a Client whose handler receives objects that are not decoded. Its
// changes are measured twice, the second time with a handler that decodes each object
// once.
type Decoder interface {
	Decode(bool)
}

// A Target is the API server: its URL and, for https, the CA's certificate in PEM.
type Target struct {
	URL string
	CA  []byte
}

// A Mode is one configuration of a library.
type Mode struct {
	Name     string        // such as "typed-json-list"
	Library  string        // such as "client-go"
	Encoding string        // on the wire; only modes with the same one are compared
	Default  bool          // client-go's default with this encoding
	Partial  bool          // keeps less than whole objects, so others are not compared with it
	Env      []string      // environment of the process, as "NAME=value"
	New      func() Client `json:"-"`
}

// An Order is the task of a client's process. The process reads it as JSON from
// standard input, and writes the Result to standard output.
type Order struct {
	Mode   string
	Target Target
	Pods   int // number of Pods of the server
	Events int // number of changes to follow
	// Profile is the beginning of the file names of CPU profiles, to which the name
	// of the phase is appended; "" for none.
	Profile string
}

// A Result has the figures of a client. Times are seconds of wall time, or of CPU time
// of the process; sizes are bytes.
type Result struct {
	Sync          Phase
	HeapPerObject float64 // live heap after the sync
	Events        Phase
	Decoded       *Phase // events with a handler that decodes; nil for other clients
	Relist        Phase  // after a 410, without changes
}

// A Phase is one part of a run.
type Phase struct {
	Wall, CPU          float64
	RSSBefore, RSSPeak float64
	Handled            int64 // calls of the handler
}

// Main is the main function of a program with these modes. With the argument "modes"
// it lists them.
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
	// bench/informer keeps the input open until it ends.
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
