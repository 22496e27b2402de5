// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package barewrites

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
	"github.com/watchkeeper/watchkeeper/bench/lib/streams"
)

// A Process is a server in its own process.
type Process struct {
	*process.Child
	HTTP1, HTTP2 streams.Target
}

// StartSelf starts this program with arguments that make it call Serve with its standard
// input and output. The caller calls Stop; the process also ends with this one.
func StartSelf(args ...string) (*Process, error) {
	child, err := process.StartSelf(args...)
	if err != nil {
		return nil, err
	}
	p := &Process{Child: child}
	var at addresses
	if err := json.NewDecoder(child.Out).Decode(&at); err != nil {
		p.Stop()
		return nil, fmt.Errorf("the baseline's server does not start: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(at.CA)
	p.HTTP1 = streams.Target{Address: at.HTTP1, Protocol: streams.HTTP1}
	p.HTTP2 = streams.Target{Address: at.HTTP2, Protocol: streams.HTTP2, TLS: &tls.Config{RootCAs: roots}}
	return p, nil
}

// Events makes the server write n events to all watches.
func (p *Process) Events(n int) error {
	_, err := p.In.Write(bytes.Repeat([]byte{'\n'}, n))
	return err
}
