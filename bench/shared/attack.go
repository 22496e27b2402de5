// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/watchkeeper/watchkeeper/bench/lib/process"
)

const (
	// What the hostile user does at a time.
	hostileWatches, hostileLoops, hostileReaders, hostileExports = 200, 40, 40, 20
	// everything is a list of all of the ballast.
	everything = "/api/v1/serviceaccounts?labelSelector=zzN!%3Dq"

	watches, lists, slowLists, exports = "watches", "lists", "lists that it reads slowly", "exports"
)

// attackWith is the environment variable of a process that is the hostile user's client: its
// victim, as JSON.
const attackWith = "SHARED_BENCH_ATTACK"

// A victim is a gateway, and whose token is used there.
type victim struct{ Address, CA, Token string }

// startAttack begins to do what a user can, in its own process, which takes only the processor
// time that the servers and the other users leave, as if it ran on another machine. wait waits until
// the process has ended, which it does with ctx, and returns how many requests were answered with
// 200.
func startAttack(ctx context.Context, v victim) (wait func() (int, error)) {
	var out bytes.Buffer
	failed := func() error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), attackWith+"="+string(text))
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		return cmd.Run()
	}
	ended := make(chan error, 1)
	go func() { ended <- failed() }()
	return func() (int, error) {
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			return 0, fmt.Errorf("the hostile user's client: %w", err)
		}
		return strconv.Atoi(strings.TrimSpace(out.String()))
	}
}

// attacks reports whether this was the process of [startAttack].
func attacks() bool {
	text := os.Getenv(attackWith)
	if text == "" {
		return false
	}
	if err := attack(text); err != nil {
		fmt.Fprintln(os.Stderr, "bench: hostile client:", err)
		os.Exit(1)
	}
	return true
}

// attack prints how many requests were answered.
func attack(text string) error {
	var v victim
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	ca, err := os.ReadFile(v.CA)
	if err != nil {
		return err
	}
	if _, err := process.Yield(); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &attacker{victim: v, config: &tls.Config{RootCAs: roots}, answered: map[string]int{}}
	a.begin(ctx)
	a.running.Wait()
	all := 0
	for _, what := range []string{watches, lists, slowLists, exports} {
		if a.answered[what] == 0 {
			return fmt.Errorf("none of its %s was answered: it is no attack", what)
		}
		all += a.answered[what]
	}
	_, err = fmt.Println(all)
	return err
}

// An attacker is the hostile user.
type attacker struct {
	victim
	config   *tls.Config
	running  sync.WaitGroup
	mu       sync.Mutex
	answered map[string]int // requests with 200, by what they ask for
}

// begin does what a user can until ctx ends.
func (a *attacker) begin(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: a.config.Clone(), ForceAttemptHTTP2: true}}
	for i := range hostileWatches {
		a.loop(ctx, watches, client, fmt.Sprintf("/api/v1/configmaps?watch=1&labelSelector=n%%21%%3D%d", i), false)
	}
	for range hostileLoops {
		a.loop(ctx, lists, client, everything, false)
	}
	for range hostileReaders {
		a.loop(ctx, slowLists, a.slowClient(), everything, true)
	}
	for range hostileExports {
		a.loop(ctx, exports, client, "/watchkeeper/v1/history/export?since=1h", false)
	}
}

// loop repeats a request, and reads its answers at once or a few bytes at a time.
func (a *attacker) loop(ctx context.Context, what string, client *http.Client, path string, slow bool) {
	a.running.Go(func() {
		for ctx.Err() == nil {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+a.Address+path, http.NoBody)
			if err != nil {
				return
			}
			req.Header.Set("Authorization", "Bearer "+a.Token)
			resp, err := client.Do(req)
			if err != nil {
				continue
			}
			if resp.StatusCode == http.StatusOK {
				a.mu.Lock()
				a.answered[what]++
				a.mu.Unlock()
			}
			for slow && ctx.Err() == nil {
				if _, err := io.CopyN(io.Discard, resp.Body, 64); err != nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
}

// slowClient returns a client with its own connection that has small buffers.
func (a *attacker) slowClient() *http.Client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: a.config.Clone(), DialContext: dial}}
}
