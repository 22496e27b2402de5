// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package livetable

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"
)

const framesPerSecond = 30 // that bubbletea writes

type (
	frameMsg struct{} // a frame is due
	quitMsg  struct{} // as q
)

// runTerminal shows the tables in a terminal.
func runTerminal(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := newPacer()
	m, err := newModel(ctx, o, p)
	if err != nil {
		return err
	}
	options := []tea.ProgramOption{
		tea.WithInput(nil), tea.WithOutput(o.Out), tea.WithFPS(framesPerSecond),
		// Signals end the program as q does, so that the last state remains.
		tea.WithoutSignalHandler(),
	}
	if term.IsTerminal(int(o.In.Fd())) {
		options[0] = tea.WithInput(o.In)
	}
	if o.NoColor {
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	}
	program := tea.NewProgram(m, options...)

	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	helpers.Go(func() { p.run(ctx, func() { program.Send(frameMsg{}) }) })
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, resumed)
	defer signal.Stop(signals)
	helpers.Go(func() {
		for {
			select {
			case <-ctx.Done():
				program.Send(quitMsg{})
				return
			case s := <-signals:
				if s == resumed {
					m.continued(program)
				} else {
					program.Send(quitMsg{})
				}
			}
		}
	})
	m.compare()
	_, err = program.Run()
	m.stop()
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return m.refusal()
}

// continued sets the terminal up again after a stop that was not that of Ctrl-Z, which
// bubbletea handles. The stop itself cannot be caught: once a Go program has caught
// SIGTSTP, it cannot be stopped by it any more.
func (m *model) continued(program *tea.Program) {
	if m.suspended.Load() {
		return
	}
	// A system call that a signal interrupts is no reason to leave the terminal as it is.
	_ = program.ReleaseTerminal()
	// bubbletea's drawing goroutine stops the ticker some time after it was told to end: if that
	// is after the start of the next one, nothing is drawn any more.
	time.Sleep(restorePause)
	if program.RestoreTerminal() != nil {
		time.Sleep(restorePause)
		_ = program.RestoreTerminal()
	}
	program.Send(tea.ClearScreen())
}

// restorePause is between the end of one set-up of the terminal and the next.
const restorePause = 250 * time.Millisecond
