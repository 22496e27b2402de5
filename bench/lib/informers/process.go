// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"encoding/json"
	"fmt"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
)

// A Process is an informer in its own process.
type Process struct {
	*process.Child
	Synced Synced

	out *json.Decoder
}

// StartSelf starts this program with arguments that make it call Serve with its standard
// input and output, and returns when the informer has synced. The caller calls Stop; the
// process also ends with this one.
func StartSelf(o Order, args ...string) (*Process, error) {
	child, err := process.StartSelf(args...)
	if err != nil {
		return nil, err
	}
	p := &Process{Child: child, out: json.NewDecoder(child.Out)}
	if err := p.ask(o, &p.Synced); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// ask writes a question, and reads the answer.
func (p *Process) ask(question, answer any) error {
	if err := json.NewEncoder(p.In).Encode(question); err != nil {
		return err
	}
	if err := p.out.Decode(answer); err != nil {
		return fmt.Errorf("the informer's process has ended: %w", err)
	}
	return nil
}

// Update has the process follow a Command.
func (p *Process) Update(c Command) (lags []float64, err error) {
	err = p.ask(c, &lags)
	return lags, err
}
