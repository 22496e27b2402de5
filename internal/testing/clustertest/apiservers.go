// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const apiServer = "kube-apiserver"

// replicas returns the flags of a control plane with several API servers, from the
// environment: WATCHKEEPER_APISERVERS is their number, by default one without a
// balancer, and WATCHKEEPER_BALANCE is how the balancer spreads clients over them. A
// test that names --apiservers itself has its own choice.
func replicas(flags []string) []string {
	number := os.Getenv("WATCHKEEPER_APISERVERS")
	if number == "" || slices.Contains(flags, "--apiservers") {
		return nil
	}
	all := []string{"--apiservers", number}
	if balance := os.Getenv("WATCHKEEPER_BALANCE"); balance != "" {
		all = append(all, "--balance", balance)
	}
	return all
}

// Ports returns the ports of the components. That of kube-apiserver is the balancer's,
// if there is one.
func (c *Cluster) Ports() (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(c.Dir, "state.json"))
	if err != nil {
		return nil, err
	}
	var state struct{ Ports map[string]int }
	err = json.Unmarshal(text, &state)
	return state.Ports, err
}

// APIServers returns the URL of each API server, past the balancer.
func (c *Cluster) APIServers() ([]string, error) {
	ports, err := c.Ports()
	if err != nil {
		return nil, err
	}
	if first, ok := ports[apiServer+"-1"]; ok { // the port of kube-apiserver if there are several
		ports[apiServer] = first
	}
	var urls []string
	for _, name := range apiServersOf(ports) {
		urls = append(urls, fmt.Sprintf("https://127.0.0.1:%d", ports[name]))
	}
	return urls, nil
}

// APIServerNames returns the components that are API servers, the first first.
func (c *Cluster) APIServerNames() ([]string, error) {
	ports, err := c.Ports()
	return apiServersOf(ports), err
}

// SignalAPIServers stops all API servers with the named signal. Signal, with
// kube-apiserver, kube-apiserver-2 and so on, stops one.
func (c *Cluster) SignalAPIServers(signal string) error {
	return c.eachAPIServer(func(name string) error { return c.Signal(name, signal) })
}

// StartAPIServers starts all API servers again, as StartComponent does.
func (c *Cluster) StartAPIServers() error { return c.eachAPIServer(c.StartComponent) }

// eachAPIServer calls do for one API server after the other.
func (c *Cluster) eachAPIServer(do func(component string) error) error {
	names, err := c.APIServerNames()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, do(name))
	}
	return errors.Join(errs...)
}

func apiServersOf(ports map[string]int) []string {
	all := []string{apiServer}
	for {
		next := fmt.Sprintf("%s-%d", apiServer, len(all)+1)
		if _, ok := ports[next]; !ok {
			return all
		}
		all = append(all, next)
	}
}
